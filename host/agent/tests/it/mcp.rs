//! MCP clients of every protocol revision.

use serde_json::{Value, json};

use crate::{
    openapi::check_committed,
    world::{Answer, KEY, World},
};

const VERSION: &str = "2026-07-28";

async fn post(world: &World, headers: &[(&str, &str)], body: &Value) -> Answer {
    let key = format!("Bearer {KEY}");
    let headers = [&[("Authorization", key.as_str())], headers].concat();
    world.send("POST /mcp", &headers, body.to_string()).await
}

/// Calls a method as a client does after `initialize`.
async fn ask(world: &World, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = post(world, &[("MCP-Protocol-Version", "2025-11-25")], &request).await;
    assert_eq!(
        (answer.status, answer.json()["id"].as_i64()),
        (200, Some(7)),
        "{answer:?}"
    );
    answer.json()
}

/// Calls a tool and returns its structured result, which must equal its text.
async fn call(world: &World, tool: &str, arguments: Value) -> Value {
    let answer = ask(world, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{tool}: {answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        result["structuredContent"]
    );
    result["structuredContent"].clone()
}

/// Calls a tool that fails and returns the error.
async fn failure(world: &World, tool: &str, arguments: Value) -> String {
    let answer = ask(world, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_description_of_the_tools_is_up_to_date() {
    check_committed("mcp-tools.json", &agent::mcp_tools());
}

#[tokio::test]
async fn hands_are_shaken_in_the_revision_that_both_speak() {
    let world = World::new().await;
    for (asked, got) in [
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2024-11-05"), "2025-11-25"),
        (json!(null), "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = ask(&world, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], got, "{asked}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "Svc");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let taken = post(&world, &[], &ready).await;
    assert_eq!((taken.status, taken.body.len()), (202, 0));
    assert_eq!(ask(&world, "ping", json!({})).await["result"], json!({}));
    assert_eq!(ask(&world, "resources/list", json!({})).await["error"]["code"], -32601);
    assert_eq!(
        ask(&world, "tools/call", json!({"name": "nothing"})).await["error"]["code"],
        -32602
    );
    let listed = ask(&world, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 14);
    assert!(listed["result"].get("resultType").is_none());
    world.end().await;
}

#[tokio::test]
async fn without_a_session_every_request_says_it_all() {
    let world = World::new().await;
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}});
    let version = ("MCP-Protocol-Version", VERSION);
    let send = async |method: &str, name: Option<&str>| {
        let params = match name {
            Some(name) => json!({"_meta": meta, "name": name}),
            None => json!({"_meta": meta}),
        };
        let request = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
        let headers = [version, ("Mcp-Method", method), ("Mcp-Name", name.unwrap_or_default())];
        let used = if name.is_some() { 3 } else { 2 };
        post(&world, &headers[..used], &request).await
    };
    let found = send("server/discover", None).await;
    let result = &found.json()["result"];
    assert!(
        result["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!(VERSION)),
        "{result}"
    );
    assert_eq!(result["resultType"], "complete");
    let listed = send("tools/list", None).await.json();
    assert!(listed["result"]["ttlMs"].is_number() && listed["result"]["cacheScope"] == "private");
    let called = send("tools/call", Some("queue_list")).await.json();
    assert_eq!(called["result"]["structuredContent"]["queues"][0]["queueId"], "main");
    assert_eq!(
        called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "Svc"
    );
    for (method, name, status, code) in [
        ("ping", None, 404, -32601),
        ("initialize-again", None, 404, -32601),
        ("tools/call", Some("nothing"), 400, -32602),
    ] {
        let refused = send(method, name).await;
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].as_i64()),
            (status, Some(code)),
            "{method}"
        );
    }
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let bare = post(&world, &[], &request).await;
    assert_eq!(
        (bare.status, bare.json()["error"]["code"].as_i64()),
        (400, Some(-32020))
    );
    world.end().await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_as_such() {
    let world = World::new().await;
    for (body, code) in [
        (json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]), -32600),
        (json!("ping"), -32600),
        (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), -32600),
    ] {
        let refused = post(&world, &[], &body).await;
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].as_i64()),
            (400, Some(code)),
            "{body}"
        );
        assert!(refused.json()["id"].is_null());
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let old = post(&world, &[("MCP-Protocol-Version", "1999-01-01")], &ping)
        .await
        .json();
    assert_eq!(old["error"]["code"], -32022);
    assert_eq!(old["error"]["data"]["requested"], "1999-01-01");
    for method in ["GET", "DELETE"] {
        let other = world.ask(&format!("{method} /mcp"), "").await;
        assert_eq!((other.status, other.header("allow")), (405, Some("POST")));
    }
    world.end().await;
}

#[tokio::test]
async fn downloads_are_added_followed_and_removed() {
    let world = World::new().await;
    let add =
        json!({"url": "http://127.0.0.1:9/f", "fileName": "n", "segments": 3, "queueId": "later", "cookies": null});
    let id = call(&world, "download_add", add).await["taskId"].take();
    let one = json!({"taskId": id});
    let task = call(&world, "download_get", one.clone()).await;
    assert_eq!(
        (&task["task"]["queueId"], &task["task"]["fileName"]),
        (&json!("later"), &json!("n"))
    );
    assert_eq!(call(&world, "download_pause", one.clone()).await, json!({"paused": id}));
    let paused = call(&world, "download_list", json!({"status": "paused"})).await;
    assert_eq!((&paused["count"], &paused["tasks"][0]["taskId"]), (&json!(1), &id));
    assert_eq!(
        call(&world, "download_list", json!({"status": "completed"})).await,
        json!({"tasks": [], "count": 0})
    );
    assert_eq!(
        call(&world, "download_resume", one.clone()).await,
        json!({"resumed": id})
    );
    assert_eq!(
        call(&world, "download_pause_all", json!({})).await,
        json!({"pausedAll": true})
    );
    assert_eq!(
        call(&world, "download_resume_all", json!({})).await,
        json!({"resumedAll": true})
    );
    let remove = json!({"taskId": id, "deleteFiles": true});
    assert_eq!(
        call(&world, "download_remove", remove).await,
        json!({"removed": id, "deletedFiles": true})
    );
    assert_eq!(call(&world, "download_list", json!({})).await["count"], 0);
    assert_eq!(
        call(&world, "queue_list", json!({})).await["queues"][0]["queueId"],
        "main"
    );
    assert_eq!(call(&world, "plugin_list", json!({})).await, json!({"plugins": []}));
    let preview = call(&world, "resolve_preview", json!({"url": "http://127.0.0.1:9/f"})).await;
    assert_eq!(preview["items"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_tool_that_fails_says_why_to_the_model() {
    let mut world = World::new().await;
    for (tool, arguments, expect) in [
        ("download_add", json!({}), "missing field `url`"),
        ("download_add", json!({"url": " "}), "url is required"),
        ("download_add", json!({"url": "gopher://a/"}), "not a scheme"),
        ("download_add", json!({"url": "http://a/", "checksum": "x"}), "checksum"),
        (
            "download_add",
            json!({"url": "http://a/", "name": "x"}),
            "name: unknown field, expected",
        ),
        ("download_list", json!({"status": "lost"}), "no status \"lost\""),
        ("download_get", json!({"taskId": "x"}), "task not found: x"),
        ("download_pause", json!({"taskId": "x"}), "task not found: x"),
        ("queue_list", json!({"x": 1}), "unknown field `x`"),
    ] {
        let said = failure(&world, tool, arguments).await;
        assert!(said.contains(expect), "{tool}: {said}");
    }
    let wrong = json!({"name": "queue_list", "arguments": []});
    assert_eq!(ask(&world, "tools/call", wrong).await["error"]["code"], -32602);
    world.end_daemon().await;
    assert!(failure(&world, "queue_list", json!({})).await.contains("daemon"));
    world.end().await;
}

#[tokio::test]
async fn progress_notifications_are_sent_on_request() {
    let world = World::new().await;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "resolve_preview",
        "arguments": {"url": "http://127.0.0.1:9/f"}, "_meta": {"progressToken": "p"}}});
    let accept = ("Accept", "application/json, text/event-stream");
    let answer = post(&world, &[accept], &request).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = String::from_utf8(answer.body).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(messages[0]["method"], "notifications/progress", "{text}");
    assert_eq!(
        (
            &messages[0]["params"]["progressToken"],
            &messages[0]["params"]["progress"]
        ),
        (&json!("p"), &json!(0))
    );
    assert_eq!(messages.last().unwrap()["result"]["isError"], false);
    let plain = post(&world, &[("Accept", "application/json")], &request).await;
    assert_eq!(plain.header("content-type"), Some("application/json"));
    world.end().await;
}
