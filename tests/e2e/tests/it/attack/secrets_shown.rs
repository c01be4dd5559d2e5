//! Headers that are given with a download may carry keys of any name: whoever may ask about the download is not shown them.
//! What is typed into a login is shown to nobody, and not kept.

use std::{fs, path::Path};

use e2e::{Home, Service, http, service::KEY};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::scripts;
use crate::remote::login;

const SECRETS: [&str; 5] = [
    "marked-api-1",
    "marked-login-2",
    "marked-template-3",
    "marked-password-4",
    "marked-proxy-5",
];

#[test]
fn no_answer_shows_the_header_that_a_download_was_given() {
    let origin = Origin::start(vec![Resource::new("/f", Content::bytes("hello"))]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let mut answers: Vec<String> = Vec::new();
    let mut call = |method: &str, params: Value| {
        let Value::Array(mut params) = params else {
            unreachable!("parameters are a list")
        };
        params.insert(0, json!(format!("token:{KEY}")));
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut answer = service.call("POST", "/jsonrpc", Some(&call));
        answers.push(format!("{method} {answer}"));
        answer["result"].take()
    };
    let template = json!({"header": ["X-Template: marked-template-3"], "http-passwd": "marked-password-4",
        "ftp-proxy": "http://user:marked-proxy-5@127.0.0.1:9"});
    assert_eq!(call("aria2.changeGlobalOption", json!([template])), "OK");
    let options = json!({"pause": "true", "http-user": "u",
        "header": ["X-Api-Key: marked-api-1", "Authorization: Bearer marked-login-2", "X-Login: marked-login-2"]});
    let gid = call("aria2.addUri", json!([[origin.url("/f")], options]));
    let shown = call("aria2.getOption", json!([gid]))["header"]
        .as_str()
        .expect("it has some")
        .to_owned();
    assert!(
        shown.contains("X-Api-Key: ***") && shown.contains("Authorization: ***"),
        "{shown}"
    );
    let all = call("aria2.getGlobalOption", json!([]));
    assert_eq!(all["header"], "X-Template: ***\n", "{all}");
    call("aria2.tellStatus", json!([gid]));
    call("aria2.tellWaiting", json!([0, 10]));
    call("aria2.getFiles", json!([gid]));
    call("aria2.saveSession", json!([]));
    // What comes back as it was shown does not take the place of what it stands for.
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(call("aria2.changeOption", json!([gid, {"header": lines}])), "OK");
    assert_eq!(
        call("aria2.changeGlobalOption", json!([{"header": ["X-Template: ***"]}])),
        "OK"
    );
    assert_eq!(call("aria2.unpause", json!([gid])), gid);
    let sent = origin.wait_for_requests(1);
    for header in [("X-Api-Key", "marked-api-1"), ("X-Login", "marked-login-2")] {
        let is = |(name, value): &(String, String)| (name.as_str(), value.as_str()) == header;
        assert!(
            sent[0].headers.iter().any(is),
            "{header:?} is not in {:?}",
            sent[0].headers
        );
    }
    let tasks = service.call("GET", "/api/v1/tasks", None);
    let id = tasks[0]["taskId"].as_str().expect("there is one").to_owned();
    answers.push(tasks.to_string());
    answers.push(service.task(&id).to_string());
    let mut rpc = service.rpc();
    for method in [
        "daemon.task.get",
        "daemon.task.request",
        "daemon.task.activity",
        "daemon.task.sources",
    ] {
        let answer = rpc.call(method, &json!({"taskId": id})).expect("it answers");
        answers.push(format!("{method} {answer}"));
    }
    let bearer = format!("Bearer {KEY}");
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "download_get", "arguments": {"taskId": id}}});
    let answer = http::ask(
        service.address(),
        "POST",
        "/mcp",
        &[("Authorization", &bearer)],
        Some(&get),
    );
    answers.push(answer.expect("it answers").text());
    for secret in SECRETS {
        let told: Vec<_> = answers.iter().filter(|answer| answer.contains(secret)).collect();
        assert!(told.is_empty(), "{secret}: {told:?}");
    }
}

/// The files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path) {
            let is_there = bytes.windows(text.len()).any(|part| part == text.as_bytes());
            found.extend(is_there.then(|| path.display().to_string()));
        }
    }
    found
}

#[test]
fn what_is_typed_into_a_login_is_in_no_answer_no_log_and_no_file() {
    const TYPED: &str = "marked-typed-6";
    let home = Home::new();
    let server = home.new_server().env("SVC_TOKEN", KEY).env("SVC_LOG_LEVEL", "trace");
    let service = Service::start(server);
    service.wait_until_ready();
    scripts::install(&service, &login::archive(&home));
    let path = format!("/api/v1/plugins/{}/auth", login::PLUGIN);
    let mut answers = Vec::new();
    let mut ask = |request: Value| {
        let answer = service.ask("POST", &path, Some(&request)).expect("the service answers");
        answers.push(answer.body.to_string());
        answer
    };
    let begun = ask(json!({"action": "begin", "mode": "password"})).body;
    let answer = |values: Value| json!({"action": "answer", "sessionId": begun["sessionId"], "values": values});
    for wrong in [
        json!({"user": "ann", "password": TYPED, "pin": TYPED}),
        json!({"user": TYPED.repeat(1000), "password": TYPED}),
        json!({"user": "ann", "password": [TYPED]}),
    ] {
        assert_eq!(ask(answer(wrong)).status, 400);
    }
    let asks_for_a_code = ask(answer(json!({"user": "ann", "password": TYPED}))).body;
    let message = "A code was sent to ann, whose secret is called password";
    assert_eq!(asks_for_a_code["message"], message, "{asks_for_a_code}");
    let done = ask(answer(json!({"code": "1234"}))).body;
    assert_eq!(done["status"], "success", "{done}");
    ask(json!({"action": "status"}));
    for path in [
        "/api/v1/plugins".to_owned(),
        format!("/api/v1/plugins/{}/journal", login::PLUGIN),
    ] {
        answers.push(service.call("GET", &path, None).to_string());
    }
    let mut rpc = service.rpc();
    let snapshot = rpc.call("system.snapshot", &json!({})).expect("it answers");
    answers.push(snapshot.to_string());
    let told: Vec<_> = answers.iter().filter(|answer| answer.contains(TYPED)).collect();
    assert!(told.is_empty(), "{told:?}");
    drop(rpc);
    drop(service);
    assert_eq!(files_with(&home.data(), TYPED), [""; 0]);
}
