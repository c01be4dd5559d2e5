//! What browsers hand over comes from pages: it must not lead into the user's network, nor make requests of any kind.

use e2e::{
    Home, Service, http,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

fn hand_over(service: &Service, headers: &[(&str, &str)], body: &Value) -> u16 {
    let headers = [&[("X-Svc-Client", "test")], headers].concat();
    let answer = http::ask(service.address(), "POST", "/download", &headers, Some(body));
    answer.expect("it answers").status
}

/// Waits until the only task has failed or is complete, and says how.
fn outcome(tasks: impl Fn() -> Value) -> String {
    let mut kind = String::new();
    wait_until("the download ends", || {
        let tasks = tasks();
        kind = match &tasks[0] {
            task if task["status"] == 3 => "completed".to_owned(),
            task => task["errorKind"].as_str().unwrap_or_default().to_owned(),
        };
        !kind.is_empty()
    });
    kind
}

#[test]
fn a_page_reaches_no_private_host_by_calling_itself_one() {
    let origin = Origin::start(vec![Resource::new("/f", Content::bytes("secret"))]);
    let private = origin.url("/f");
    // With the key, as an extension has it: what it hands over is still the page's.
    for (headers, referrer) in [
        (vec![("Origin", "moz-extension://a")], private.as_str()),
        (vec![("Origin", "moz-extension://a")], ""),
        (vec![], private.as_str()),
        (vec![("Sec-Fetch-Site", "none")], ""),
    ] {
        let home = Home::new();
        let service = home.serve();
        service.wait_until_ready();
        let headers = [&[("X-Svc-Token", KEY)], &headers[..]].concat();
        assert_eq!(
            hand_over(&service, &headers, &json!({"url": private, "referrer": referrer})),
            200
        );
        let kind = outcome(|| service.call("GET", "/api/v1/tasks", None));
        assert_eq!(kind, "forbidden-redirect", "{headers:?} {referrer}");
    }
    assert!(origin.requests().is_empty(), "{:?}", origin.requests());
    // A tool of the user's own, which has the key and names no page, may.
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(
        hand_over(&service, &[("X-Svc-Token", KEY)], &json!({"url": private})),
        200
    );
    assert_eq!(outcome(|| service.call("GET", "/api/v1/tasks", None)), "completed");
}

/// A desktop without a key whose user wants no questions.
fn silent_desktop(home: &Home) -> (Service, e2e::Rpc) {
    let service = Service::start(home.new_desktop());
    let lock = std::fs::read_to_string(home.data().join("agent/agent.lock")).expect("it runs");
    let pass = lock.lines().nth(1).expect("the pass is in the lock");
    let mut rpc = e2e::Rpc::connect(service.address(), pass).expect("its user may");
    let silent = json!({"values": {"silent_download_enabled": true}});
    rpc.call("agent.preferences.patch", &silent).expect("its user may");
    (service, rpc)
}

#[test]
fn who_says_nothing_of_itself_and_has_no_key_is_a_stranger() {
    let origin = Origin::start(vec![Resource::new("/f", Content::bytes("secret"))]);
    let home = Home::new();
    let (service, mut rpc) = silent_desktop(&home);
    assert_eq!(hand_over(&service, &[], &json!({"url": origin.url("/f")})), 200);
    let mut tasks = Value::Null;
    wait_until("the download ends", || {
        tasks = rpc.call("daemon.task.list", &json!({})).expect("it answers");
        !tasks[0]["errorKind"].as_str().unwrap_or_default().is_empty()
    });
    assert_eq!(tasks[0]["errorKind"], "forbidden-redirect", "{tasks}");
    assert!(origin.requests().is_empty(), "{:?}", origin.requests());
}

#[test]
fn a_stranger_sends_no_body_unless_the_user_saw_it() {
    let home = Home::new();
    let (service, mut rpc) = silent_desktop(&home);
    let post = json!({"url": "http://evil.example:2375/containers/create", "method": "POST",
        "body": {"kind": "urlencoded", "raw": "Image=evil"}});
    let delete = json!({"url": "http://evil.example/", "method": "DELETE"});
    for headers in [&[][..], &[("Origin", "chrome-extension://a")]] {
        assert_eq!(hand_over(&service, headers, &post), 403);
        assert_eq!(hand_over(&service, headers, &delete), 403);
    }
    let ask = json!({"values": {"silent_download_enabled": false}});
    rpc.call("agent.preferences.patch", &ask).expect("its user may");
    assert_eq!(hand_over(&service, &[], &post), 200);
    let waiting = rpc.call("agent.capture.list", &json!({})).expect("it answers");
    assert_eq!(
        (&waiting[0]["method"], &waiting[0]["body"]),
        (&json!("POST"), &json!("Image=evil")),
        "{waiting}"
    );
    let run = e2e::Svc::new()
        .env("HOME", home.path())
        .env("SVC_DATA_DIR", home.data())
        .args(["capture", "list"])
        .run();
    assert!(
        run.stdout
            .iter()
            .any(|line| line.contains("POST") && line.contains("Image=evil")),
        "{run:?}"
    );
}
