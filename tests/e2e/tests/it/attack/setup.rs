//! The first access key of a server is for its own user: not for whoever reaches it from this machine.

use e2e::{Home, Service, http, other_user, service::KEY};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/setup";

/// The code in the link that was printed.
fn shown_code(service: &mut Service) -> String {
    let line = service
        .line_with("#setup=")
        .expect("a server without a key shows a code");
    line.split("#setup=").nth(1).expect("the line has it").trim().to_owned()
}

fn set_up_as_another_user(service: &Service, body: &Value) -> u16 {
    let stream = other_user::connect(service.address());
    let answer = http::ask_on(stream, service.address(), "POST", PATH, &[], Some(body));
    answer.expect("it answers").status
}

#[track_caller]
fn assert_not_set_up(service: &Service) {
    let status = http::ask(service.address(), "GET", "/api/v1/setup/status", &[], None).expect("it answers");
    assert_eq!(status.body["setupRequired"], true, "{}", status.body);
}

#[test]
fn a_forwarder_of_another_user_does_not_set_the_first_key_and_the_code_still_does() {
    let home = Home::new();
    let mut service = Service::start(home.new_server());
    let code = shown_code(&mut service);
    let through = |body: &Value| {
        let forwarder = other_user::forward_once(service.address());
        // What somebody elsewhere sends arrives with this machine's own name and says nothing of a proxy.
        let answer = http::ask(&forwarder, "POST", PATH, &[("Host", "localhost")], Some(body));
        let answer = answer.expect("the forwarder passes answers on");
        (answer.status, answer.body)
    };
    let (status, refused) = through(&json!({"token": "attackers-key-1"}));
    assert_eq!(status, 403, "{refused}");
    assert!(
        refused["error"].as_str().is_some_and(|error| error.contains("code")),
        "{refused}"
    );
    let (status, refused) = through(&json!({"token": "attackers-key-1", "code": "AAAAA-AAAAA"}));
    assert_eq!(status, 403, "{refused}");
    assert_not_set_up(&service);
    let (status, set) = through(&json!({"token": KEY, "code": code}));
    assert_eq!(status, 200, "{set}");
    service.call("GET", "/api/v1/tasks", None);
}

#[test]
fn another_local_user_does_not_set_the_first_key_without_the_code() {
    let home = Home::new();
    let mut service = Service::start(home.new_server());
    let code = shown_code(&mut service);
    let stream = other_user::connect(service.address());
    let status = http::ask_on(stream, service.address(), "GET", "/api/v1/setup/status", &[], None);
    assert_eq!(status.expect("it answers").body["codeRequired"], true);
    assert_eq!(
        set_up_as_another_user(&service, &json!({"token": "attackers-key-1"})),
        403
    );
    assert_not_set_up(&service);
    assert_eq!(
        set_up_as_another_user(&service, &json!({"token": KEY, "code": code})),
        200
    );
    service.call("GET", "/api/v1/tasks", None);
}

#[test]
fn an_extension_does_not_set_the_first_key_without_the_code() {
    let home = Home::new();
    let service = Service::start(home.new_server());
    for origin in ["chrome-extension://aaaa", "moz-extension://b-b"] {
        let body = json!({"token": "attackers-key-1"});
        let answer = http::ask(service.address(), "POST", PATH, &[("Origin", origin)], Some(&body));
        assert_eq!(answer.expect("it answers").status, 403, "{origin}");
    }
    assert_not_set_up(&service);
}

#[test]
fn a_proxy_of_any_make_does_not_set_the_first_key_without_the_code() {
    let home = Home::new();
    let service = Service::start(home.new_server());
    for name in [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "Via",
        "Forwarded",
        "X-Real-IP",
        "CF-Connecting-IP",
    ] {
        let body = json!({"token": "attackers-key-1"});
        let answer = http::ask(service.address(), "POST", PATH, &[(name, "127.0.0.1")], Some(&body));
        assert_eq!(answer.expect("it answers").status, 403, "{name}");
    }
    assert_not_set_up(&service);
}
