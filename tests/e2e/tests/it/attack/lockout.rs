//! A page that the owner visits sends wrong keys from the owner's own browser: the owner must not be locked out by it, and
//! guessing must not be easier for that.

use std::net::TcpStream;

use data_encoding::BASE64URL_NOPAD;
use e2e::{Home, Service, http, service::KEY};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;

/// More than any window allows.
const TRIES: usize = 12;

const EVIL: (&str, &str) = ("Origin", "https://evil.example");
const WRONG: (&str, &str) = ("Authorization", "Bearer wrong-key-1");

fn send(service: &Service, line: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    let stream = TcpStream::connect(service.address()).expect("the service listens");
    let answer = http::send_text(stream, service.address(), line, headers, body);
    answer.expect("it answers").status
}

/// Sends the same again and again; gives how it was answered.
fn again_and_again(service: &Service, line: &str, headers: &[(&str, &str)], body: &str) -> Vec<u16> {
    (0..TRIES).map(|_| send(service, line, headers, body)).collect()
}

fn aria2(service: &Service, key: &str) -> Value {
    let call = json!({"id": 1, "method": "aria2.getVersion", "params": [format!("token:{key}")]});
    let answer = http::ask(service.address(), "POST", "/jsonrpc", &[], Some(&call)).expect("it answers");
    answer.body
}

#[track_caller]
fn assert_open(service: &Service, after: &str) {
    let listed = service.ask("GET", "/api/v1/tasks", None).expect("it answers");
    assert_eq!(listed.status, 200, "the management API after {after}: {}", listed.body);
    let called = aria2(service, KEY);
    assert!(called["result"].is_object(), "aria2's calls after {after}: {called}");
    service.rpc();
}

#[test]
fn images_with_wrong_keys_close_the_query_form_alone() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let file = "GET /api/web/files/tasks/00000000-0000-4000-8000-000000000000";
    let answers = again_and_again(&service, &format!("{file}?token=wrong-key-1"), &[], "");
    assert_eq!(
        (answers[0], answers[TRIES - 1]),
        (401, 429),
        "the images were looked at: {answers:?}"
    );
    assert_open(&service, "images");
    assert_eq!(
        send(&service, &format!("{file}?token={KEY}"), &[], ""),
        429,
        "the form itself is closed"
    );
    // Its downloads go on: a header carries the key, or a ticket stands for it.
    let bearer = format!("Bearer {KEY}");
    assert_eq!(send(&service, file, &[("Authorization", &bearer)], ""), 404);
    // No browser says on plain HTTP whose image this is.
    let params = data_encoding::BASE64.encode(br#"["token:wrong-key-1"]"#);
    let call = format!("GET /jsonrpc?method=aria2.getVersion&id=1&params={params}");
    again_and_again(&service, &call, &[], "");
    assert_open(&service, "images with calls");
}

#[test]
fn posts_and_connections_of_a_page_close_no_key() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let call = json!({"id": 1, "method": "aria2.getVersion", "params": ["token:wrong-key-1"]}).to_string();
    let plain = ("Content-Type", "text/plain");
    let answers = again_and_again(&service, "POST /jsonrpc", &[plain, EVIL], &call);
    assert_eq!(answers, [403; TRIES]);
    assert_open(&service, "posts with an origin");
    let cross = ("Sec-Fetch-Site", "cross-site");
    let answers = again_and_again(&service, "POST /jsonrpc", &[plain, cross], &call);
    assert!(answers.contains(&200), "they were looked at: {answers:?}");
    assert_open(&service, "posts that a browser calls cross-site");
    let token = BASE64URL_NOPAD.encode(b"wrong-key-1");
    for _ in 0..TRIES {
        let mut request = format!("ws://{}/rpc", service.address())
            .into_client_request()
            .expect("the URL is one");
        let headers = request.headers_mut();
        headers.insert("Origin", EVIL.1.parse().expect("a header"));
        let protocols = format!("svc.rpc.v1, svc.token.{token}");
        headers.insert("Sec-WebSocket-Protocol", protocols.parse().expect("a header"));
        let stream = TcpStream::connect(service.address()).expect("the service listens");
        let refused = tungstenite::client(request, stream)
            .err()
            .map(|error| error.to_string());
        assert!(refused.is_some_and(|refused| refused.contains("403")));
    }
    assert_open(&service, "connections");
}

#[test]
fn a_page_whose_name_leads_here_locks_nobody_out_who_uses_another_name() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let rebound = ("Host", "evil.example:17800");
    // A page reads and writes its own origin as it likes; of a GET its browser says no origin.
    let answers = again_and_again(&service, "GET /api/v1/tasks", &[rebound, WRONG], "");
    assert_eq!((answers[0], answers[TRIES - 1]), (401, 429), "{answers:?}");
    assert_open(&service, "DNS rebinding");
}

#[test]
fn a_page_that_every_origin_is_allowed_to_closes_no_header_key() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let open = json!({"corsEnabled": true});
    service.rpc().call("agent.gateway.patch", &open).expect("the owner may");
    let answers = again_and_again(&service, "GET /api/v1/tasks", &[EVIL, WRONG], "");
    assert_eq!((answers[0], answers[TRIES - 1]), (401, 429), "{answers:?}");
    assert_open(&service, "requests of a page");
}

#[test]
fn guessing_is_stopped_in_every_form() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let answers = again_and_again(&service, "GET /api/v1/tasks", &[WRONG], "");
    assert_eq!(answers, [[401; 10].as_slice(), &[429; TRIES - 10]].concat());
    let bearer = format!("Bearer {KEY}");
    let right = ("Authorization", bearer.as_str());
    let file = "/api/web/files/tasks/00000000-0000-4000-8000-000000000000";
    for (line, headers) in [
        ("GET /api/v1/tasks".to_owned(), vec![right]),
        ("GET /api/v1/tasks".to_owned(), vec![right, EVIL]),
        ("GET /api/v1/tasks".to_owned(), vec![right, ("Host", "nas.example")]),
        (format!("GET {file}?token={KEY}"), vec![]),
        ("POST /jsonrpc".to_owned(), vec![]),
    ] {
        assert_eq!(send(&service, &line, &headers, ""), 429, "{line} {headers:?}");
    }
}
