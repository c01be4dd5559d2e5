//! The first access key: from this machine at once, from elsewhere with the code that was shown.

use e2e::{Home, Service, http};
use serde_json::{Value, json};

/// What a request carries that came through a proxy, from elsewhere.
const FROM_ELSEWHERE: (&str, &str) = ("X-Forwarded-For", "203.0.113.7");

fn set_up(service: &Service, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
    let answer = http::ask(service.address(), "POST", "/api/v1/setup", headers, Some(body)).expect("it answers");
    (answer.status, answer.body)
}

fn status(service: &Service, headers: &[(&str, &str)]) -> Value {
    http::ask(service.address(), "GET", "/api/v1/setup/status", headers, None)
        .expect("it answers")
        .body
}

/// The code in the link that was printed.
fn shown_code(service: &mut Service) -> String {
    let line = service
        .line_with("#setup=")
        .expect("a server without a key shows a code");
    line.split("#setup=").nth(1).expect("the line has it").trim().to_owned()
}

#[test]
fn at_this_machine_no_code_is_needed_and_the_key_counts_at_once() {
    let home = Home::new();
    let service = Service::start(home.new_server());
    let before = service.ask("GET", "/api/v1/tasks", None).expect("it answers");
    assert_eq!(before.status, 403, "{}", before.body);
    assert_eq!(
        status(&service, &[]),
        json!({"setupRequired": true, "minLength": 8, "codeRequired": false})
    );
    let curl = std::process::Command::new("curl")
        .args(["--silent", "--fail-with-body", "--json"])
        .arg(json!({"token": e2e::service::KEY}).to_string())
        .arg(format!("{}/api/v1/setup", service.url()))
        .output()
        .expect("curl is part of the system");
    assert_eq!(String::from_utf8_lossy(&curl.stdout), r#"{"ok":true}"#);
    service.call("GET", "/api/v1/tasks", None);
    let (code, body) = set_up(&service, &[], &json!({"token": "another-key-2"}));
    assert_eq!((code, body), (409, json!({"error": "setup already completed"})));
    assert_eq!(service.terminate().code, Some(0));
    let service = Service::start(home.new_server());
    service.call("GET", "/api/v1/tasks", None);
}

#[test]
fn from_elsewhere_the_code_is_needed() {
    let home = Home::new();
    let mut service = Service::start(home.new_server());
    let code = shown_code(&mut service);
    assert_eq!(status(&service, &[FROM_ELSEWHERE])["codeRequired"], true);
    let key = e2e::service::KEY;
    for body in [json!({"token": key}), json!({"token": key, "code": "AAAAA-AAAAA"})] {
        let (status, answer) = set_up(&service, &[FROM_ELSEWHERE], &body);
        assert_eq!(status, 403, "{answer}");
    }
    let weak = set_up(&service, &[FROM_ELSEWHERE], &json!({"token": "weak", "code": code}));
    assert_eq!(weak.0, 400, "{}", weak.1);
    let typed = code.to_lowercase().replace('-', "");
    let (status, answer) = set_up(&service, &[FROM_ELSEWHERE], &json!({"token": key, "code": typed}));
    assert_eq!(status, 200, "{answer}");
    service.call("GET", "/api/v1/tasks", None);
}

#[test]
fn a_page_of_another_site_cannot_set_the_key() {
    let home = Home::new();
    let service = Service::start(home.new_server());
    let body = json!({"token": "attackers-key-1"});
    let (code, answer) = set_up(&service, &[("Origin", "https://example.com")], &body);
    assert_eq!(code, 403, "{answer}");
    let (code, answer) = set_up(&service, &[("Host", "rebound.example")], &body);
    assert_eq!(code, 403, "{answer}");
    assert_eq!(status(&service, &[])["setupRequired"], true);
}
