//! Headers that are given with a download may carry keys of any name: whoever may ask about the download is not shown them.

use e2e::{Home, http, service::KEY};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

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
    for method in ["daemon.task.get", "daemon.task.request", "daemon.task.activity"] {
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
