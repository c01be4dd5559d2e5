//! Requests that are small to send and large to hold: what expands, multiplies or is never read.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{io::Write as _, net::TcpStream};

use e2e::{Home, Service, service::KEY};
use serde_json::{Value, json};

use super::hostile::{MAX_BODY, connect, exchange, many_values, memory, post, zeros};

/// What the process may grow by in a test, in MiB: what the service sets aside for large requests, and its own small ones.
const MAX_GROWTH: u64 = 100;

const TOKEN: &str = "token:open-sesame-1";

fn call(address: &str, body: &Value) -> Value {
    let (status, answer) = exchange(address, "/jsonrpc", &[], &body.to_string());
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

/// Sends this eight times at once and reads no answer. The connections stay open.
fn never_read(service: &Service, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<TcpStream> {
    let address = service.address();
    let head = post(address, path, headers, body.len());
    let send = || {
        let mut stream = connect(address);
        // The service may refuse before it has everything.
        let sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()));
        (stream, sent.is_ok())
    };
    let sent: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(sent.len() == 8, "all were made");
    // What is answered now was asked after them.
    assert_eq!(exchange(service.address(), "/ping", &[], "").0, 405);
    sent.into_iter().map(|(stream, _)| stream).collect()
}

#[test]
fn a_body_without_the_key_is_held_up_to_64_kib() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (_, before) = memory(service.pid());
    for (path, body) in [
        ("/jsonrpc", zeros(MAX_BODY)),
        (
            "/jsonrpc",
            format!("{{\"method\":\"a\",\"params\":[\"{}\"]}}", "x".repeat(MAX_BODY - 99)),
        ),
        ("/rpc", "<a/>".repeat(MAX_BODY / 4)),
    ] {
        let (status, answer) = exchange(service.address(), path, &[], &body);
        assert_eq!(status, 413, "{answer}");
        assert!(answer.contains("64 KiB") && answer.contains("X-Svc-Token"), "{answer}");
        let _kept = never_read(&service, path, &[], &body);
    }
    // A wrong key ahead of it is as good as none.
    let wrong = format!(
        "{{\"method\":\"a\",\"params\":[\"token:wrong\",\"{}\"]}}",
        "x".repeat(MAX_BODY - 99)
    );
    let (_, answer) = exchange(service.address(), "/jsonrpc", &[], &wrong);
    assert!(answer.contains("Unauthorized"), "{answer}");
    let (_, most) = memory(service.pid());
    assert!(most < before + 20, "{before} MiB became {most} MiB");
}

#[test]
fn a_large_body_whose_first_call_has_the_key_is_read() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let large = "QUFB".repeat(800 * 1024);
    let get_version =
        |token: &str| json!({"jsonrpc": "2.0", "id": "q", "method": "aria2.getVersion", "params": [token, large]});
    let answer = call(service.address(), &get_version(TOKEN));
    assert!(answer["result"]["version"].is_string(), "{answer}");
    let answer = call(service.address(), &json!([get_version(TOKEN)]));
    assert!(answer[0]["result"]["version"].is_string(), "{answer}");
    let within = json!([[{"methodName": "aria2.getVersion", "params": [TOKEN, large]}]]);
    let answer = call(
        service.address(),
        &json!({"id": 1, "method": "system.multicall", "params": within}),
    );
    assert!(answer["result"][0][0]["version"].is_string(), "{answer}");
    let body = get_version("").to_string();
    let (status, answer) = exchange(service.address(), "/jsonrpc", &[("X-Svc-Token", KEY)], &body);
    assert!(status == 200 && answer.contains("version"), "{answer}");
    let xml = format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>aria2.getVersion</methodName><params><param><value><string>{TOKEN}\
         </string></value></param><param><value><base64>{large}</base64></value></param></params></methodCall>"
    );
    let (status, answer) = exchange(service.address(), "/rpc", &[], &xml);
    assert!(status == 200 && answer.contains("version"), "{answer}");
}

#[test]
fn a_batch_of_millions_is_refused_before_it_is_expanded() {
    let home = Home::new();
    // Without a key, every program of its user is let in.
    let service = Service::start(home.new_desktop());
    let (_, before) = memory(service.pid());
    for body in [
        zeros(MAX_BODY),
        format!(
            "{{\"id\":1,\"method\":\"system.multicall\",\"params\":[{}]}}",
            zeros(MAX_BODY - 99)
        ),
    ] {
        let (status, answer) = exchange(service.address(), "/jsonrpc", &[], &body);
        assert_eq!(status, 200, "{answer}");
        assert!(
            answer.len() < 1000 && answer.contains("at most 10000 calls"),
            "{answer}"
        );
        let _kept = never_read(&service, "/jsonrpc", &[], &body);
    }
    // One call whose parameters expand.
    let bomb = format!(
        "{{\"id\":1,\"method\":\"aria2.addUri\",\"params\":[{}]}}",
        zeros(MAX_BODY - 99)
    );
    let (_, answer) = exchange(service.address(), "/jsonrpc", &[], &bomb);
    assert!(answer.contains("too many lists, objects or values"), "{answer}");
    let _kept = never_read(&service, "/jsonrpc", &[], &bomb);
    let elements = many_values(MAX_BODY);
    let (status, answer) = exchange(service.address(), "/rpc", &[], &elements);
    assert!(
        status == 200 && answer.contains("too many lists, objects or values"),
        "{answer}"
    );
    let _kept = never_read(&service, "/rpc", &[], &elements);
    let (_, most) = memory(service.pid());
    assert!(most < before + MAX_GROWTH, "{before} MiB became {most} MiB");
}

#[test]
fn the_answers_of_one_message_are_bounded() {
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    let (_, before) = memory(service.pid());
    let batch = vec![json!({"id": 1, "method": "aria2.getGlobalOption"}); 10_000];
    let answer = call(service.address(), &json!(batch));
    let answers = answer.as_array().unwrap();
    assert_eq!(answers.len(), 10_000);
    assert!(answers[0]["result"].is_object(), "{}", answers[0]);
    let last = answers[9999]["error"]["message"].as_str().unwrap();
    assert!(last.contains("16384 KiB"), "{last}");
    let within = vec![json!({"methodName": "aria2.getGlobalOption", "params": []}); 10_000];
    let multicall = json!({"id": 1, "method": "system.multicall", "params": [within]});
    let answer = call(service.address(), &multicall);
    let answers = answer["result"].as_array().unwrap();
    assert!(
        answers[0][0].is_object() && answers[9999]["message"].is_string(),
        "{}",
        answers[9999]
    );
    let _kept = never_read(&service, "/jsonrpc", &[], &json!(batch).to_string());
    let _kept = never_read(&service, "/jsonrpc", &[], &multicall.to_string());
    let (_, most) = memory(service.pid());
    assert!(most < before + MAX_GROWTH, "{before} MiB became {most} MiB");
}

#[test]
fn a_list_that_is_longer_than_an_answer_is_streamed() {
    const TASKS: usize = 6000;
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    let query = "q".repeat(2000);
    for some in (0..TASKS).collect::<Vec<_>>().chunks(1500) {
        let add = |number: &usize| {
            let uri = format!("http://127.0.0.1:9/{number}?{query}");
            json!({"id": number, "method": "aria2.addUri", "params": [[uri], {"pause": "true"}]})
        };
        let answer = call(service.address(), &some.iter().map(add).collect());
        assert!(
            answer
                .as_array()
                .unwrap()
                .iter()
                .all(|answer| answer["result"].is_string())
        );
    }
    let (_, before) = memory(service.pid());
    let ask = json!({"id": "all", "method": "aria2.tellWaiting", "params": [0, TASKS]});
    let (status, text) = exchange(service.address(), "/jsonrpc", &[], &ask.to_string());
    assert_eq!(status, 200);
    assert!(
        text.len() > 12 * 1024 * 1024,
        "{} bytes do not need a stream",
        text.len()
    );
    let answer: Value = serde_json::from_str(&text).unwrap();
    let tasks = answer["result"].as_array().unwrap();
    assert_eq!((&answer["id"], tasks.len()), (&json!("all"), TASKS));
    let uri = tasks[TASKS - 1]["files"][0]["uris"][0]["uri"].as_str().unwrap();
    assert!(uri.contains(&format!("/{}?", TASKS - 1)), "{uri}");
    let xml = format!(
        "<methodCall><methodName>aria2.tellWaiting</methodName><params><param><value><int>0</int></value></param><param>\
         <value><int>{TASKS}</int></value></param></params></methodCall>"
    );
    let (status, answer) = exchange(service.address(), "/rpc", &[], &xml);
    assert!(status == 200 && answer.ends_with("</methodResponse>"), "{status}");
    assert_eq!(answer.matches("<name>gid</name>").count(), TASKS);
    // In a batch it is too long, and the others are answered.
    let answer = call(
        service.address(),
        &json!([{"id": 1, "method": "aria2.getVersion"}, ask]),
    );
    assert!(
        answer[0]["result"].is_object() && answer[1]["error"]["message"].is_string(),
        "{}",
        answer[1]
    );
    let _kept = never_read(&service, "/jsonrpc", &[], &ask.to_string());
    let (_, most) = memory(service.pid());
    assert!(most < before + MAX_GROWTH, "{before} MiB became {most} MiB");
}

#[test]
fn a_takeover_does_not_repeat_cookies_without_bound() {
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    let (_, before) = memory(service.pid());
    let cookies = "c".repeat(2 * 1024 * 1024);
    let client = [("X-Svc-Client", "tests"), ("Content-Type", "application/json")];
    let lines = |count: usize| "http://127.0.0.1:9/f\n".repeat(count);
    for (path, body, names) in [
        (
            "/download",
            json!({"url": lines(60_000), "cookies": cookies}),
            "10000 URLs",
        ),
        ("/download", json!({"url": lines(9000), "cookies": cookies}), "16 MiB"),
        (
            "/download",
            json!({"url": lines(9000), "headers": {"X": cookies}}),
            "16 MiB",
        ),
        (
            "/download/batch",
            json!({"urls": vec!["http://127.0.0.1:9/f"; 9000], "cookies": cookies}),
            "16 MiB",
        ),
    ] {
        let (status, answer) = exchange(service.address(), path, &client, &body.to_string());
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains(names), "{answer}");
        let _kept = never_read(&service, path, &client, &body.to_string());
    }
    let mut items = vec![json!({"url": "http://127.0.0.1:9/f"}); 9000];
    items[0]["cookies"] = cookies.into();
    let (status, answer) = exchange(
        service.address(),
        "/download/batch",
        &client,
        &json!({"items": items}).to_string(),
    );
    assert!(status == 400 && answer.contains("16 MiB"), "{answer}");
    let values = format!("{{\"urls\":{}}}", zeros(MAX_BODY - 99));
    let (status, answer) = exchange(service.address(), "/download/batch", &client, &values);
    assert!(
        status == 400 && answer.contains("too many lists, objects or values"),
        "{answer}"
    );
    let (_, most) = memory(service.pid());
    assert!(most < before + MAX_GROWTH, "{before} MiB became {most} MiB");
}

#[test]
fn what_an_ai_client_sends_does_not_expand() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (_, before) = memory(service.pid());
    let key = format!("Bearer {KEY}");
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let bomb = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"a\":{}}}}}",
        zeros(MAX_BODY - 99)
    );
    for (body, names) in [
        (zeros(MAX_BODY), "several at once"),
        (bomb, "too many lists, objects or values"),
    ] {
        let (status, answer) = exchange(service.address(), "/mcp", &headers, &body);
        assert!(
            status == 400 && answer.contains("-32600") && answer.contains(names),
            "{answer}"
        );
        let _kept = never_read(&service, "/mcp", &headers, &body);
    }
    // Without the key nothing of it is read.
    let (status, _) = exchange(service.address(), "/mcp", &[], &zeros(MAX_BODY));
    assert_eq!(status, 401);
    let (_, most) = memory(service.pid());
    assert!(most < before + MAX_GROWTH, "{before} MiB became {most} MiB");
}
