//! `/rpc` as browsers and tools use it.

use agent::Edition;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::{
    client::{Client, upgrade},
    world::{KEY, PATIENCE, World},
};

#[tokio::test]
async fn who_reads_a_reply_has_what_the_call_did() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    let snapshot = client.call("system.snapshot", json!({})).await["result"].clone();
    assert_eq!(snapshot["body"]["role"], "agent");
    assert_eq!(snapshot["body"]["snapshot"]["daemonConnected"], true);
    let mut last = snapshot["sequence"].as_u64().unwrap();
    for number in 0..50 {
        let request = json!({"url": format!("http://127.0.0.1:9/{number}"), "startPaused": true});
        let made = client.call("daemon.task.create", json!({"request": request})).await;
        let id = made["result"]["taskId"].clone();
        let seen = client.events.iter().any(|told| {
            let inner = &told["event"]["event"];
            inner["type"] == "daemon" && inner["data"]["data"]["taskId"] == id
        });
        assert!(seen, "{made}");
        let task = client.call("daemon.task.get", json!({"taskId": id})).await;
        assert_eq!(task["result"]["taskId"], id);
    }
    for told in &client.events {
        assert_eq!(told["sequence"].as_u64(), Some(last + 1));
        assert_eq!(told["epoch"], snapshot["epoch"]);
        last += 1;
    }
    let tasks = client.call("daemon.task.list", json!({})).await;
    assert_eq!(tasks["result"].as_array().unwrap().len(), 50);
    world.end().await;
}

#[tokio::test]
async fn browsers_bring_the_key_as_a_protocol_and_come_from_the_same_origin() {
    let world = World::new().await;
    let key = data_encoding::BASE64URL_NOPAD.encode(KEY.as_bytes());
    let offer = format!("svc.rpc.v1, svc.token.{key}");
    let same = format!("http://{}", world.address());
    let offered = |origin: &'static str| vec![("sec-websocket-protocol", offer.as_str()), ("origin", origin)];
    let (_, chosen) = upgrade(&world, &[("sec-websocket-protocol", &offer), ("origin", &same)])
        .await
        .unwrap_or_else(|status| panic!("{status}"));
    assert_eq!(chosen.as_deref(), Some("svc.rpc.v1"));
    for origin in ["https://evil.test", "null", "chrome-extension://a"] {
        assert_eq!(upgrade(&world, &offered(origin)).await.err(), Some(403), "{origin}");
    }
    let alone = format!("svc.token.{key}");
    assert_eq!(
        upgrade(&world, &[("sec-websocket-protocol", &alone)]).await.err(),
        Some(401)
    );
    assert_eq!(upgrade(&world, &[]).await.err(), Some(401));
    world.end().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_as_the_envelope_says() {
    let world = World::new().await;
    let bearer = format!("Bearer {KEY}");
    let (mut client, _) = upgrade(&world, &[("authorization", &bearer)])
        .await
        .unwrap_or_else(|status| panic!("{status}"));
    let early = client.call("daemon.task.list", json!({})).await;
    assert_eq!(early["error"]["data"]["code"], "conflict");
    drop(client);
    let mut client = Client::open(&world).await;
    for (frame, code) in [("{", -32700), ("[]", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)] {
        client.send(frame).await;
        let refused = client.reply().await;
        assert_eq!(
            (&refused["error"]["code"], &refused["id"]),
            (&json!(code), &Value::Null),
            "{frame}"
        );
    }
    assert_eq!(client.call("moon.rise", json!({})).await["error"]["code"], -32601);
    let hidden = client
        .call("daemon.siteAuth.get", json!({"site": "https://a.test"}))
        .await;
    assert_eq!(hidden["error"]["data"]["code"], "unsupported");
    // This program cannot restart itself.
    let restarted = client.call("agent.service.restart", json!({})).await;
    assert_eq!(restarted["error"]["data"]["code"], "unsupported");
    client.send(&" ".repeat(1024 * 1024)).await;
    loop {
        if let Message::Close(frame) = client.next().await {
            assert_eq!(u16::from(frame.unwrap().code), 1009);
            break;
        }
    }
    world.end().await;
}

#[tokio::test]
async fn switches_act_at_once_and_a_new_key_ends_the_sessions_of_the_old_one() {
    let world = World::new().await;
    let (mut one, mut other) = (Client::open(&world).await, Client::open(&world).await);
    let off = one.call("agent.gateway.patch", json!({"apiEnabled": false})).await;
    assert_eq!(off["result"]["apiEnabled"], false);
    let gone = world.get("/api/v1/info").await;
    assert_eq!(
        (gone.status, gone.json()["message"].as_str()),
        (404, Some("unknown endpoint"))
    );
    let bad = one
        .call("agent.gateway.patch", json!({"apiEnabled": true, "userToken": "weak"}))
        .await;
    assert_eq!(bad["error"]["data"]["field"], "userToken");
    assert_eq!(
        one.call("agent.gateway.get", json!({})).await["result"]["apiEnabled"],
        false
    );
    let new = one
        .call(
            "agent.gateway.patch",
            json!({"apiEnabled": true, "userToken": "another-key-2"}),
        )
        .await;
    assert!(new["result"]["userTokenConfigured"].as_bool().unwrap());
    let shown = one.call("agent.gateway.revealToken", json!({})).await;
    assert_eq!(shown["result"]["userToken"], "another-key-2");
    loop {
        if let Message::Close(frame) = other.next().await {
            assert_eq!(u16::from(frame.unwrap().code), 1008);
            break;
        }
    }
    assert_eq!(world.get("/api/v1/info").await.status, 401);
    let revision = one
        .call("agent.preferences.patch", json!({"values": {"theme": "dark"}}))
        .await;
    assert_eq!(revision["result"], json!({"ok": true, "revision": 1}));
    world.end().await;
}

#[tokio::test]
async fn every_client_receives_switches_and_preferences() {
    let world = World::new().await;
    let (mut one, mut other) = (Client::open(&world).await, Client::open(&world).await);
    other.call("system.snapshot", json!({})).await;
    one.call("agent.gateway.patch", json!({"mcpEnabled": false})).await;
    one.call("agent.preferences.patch", json!({"values": {"theme": "dark"}}))
        .await;
    let heard = async {
        while other.events.len() < 2 {
            other.call("system.ping", json!({})).await;
        }
    };
    timeout(PATIENCE, heard).await.unwrap();
    let told: Vec<_> = other.events.iter().map(|event| &event["event"]["event"]).collect();
    let of_kind = |kind: &str| &told.iter().find(|event| event["type"] == kind).unwrap()["data"];
    assert_eq!(of_kind("gatewayChanged")["mcpEnabled"], false);
    assert_eq!(of_kind("gatewayChanged")["port"], world.address().port());
    assert_eq!(of_kind("preferencesChanged")["values"], json!({"theme": "dark"}));
    let port = one.call("agent.gateway.patch", json!({"port": 18_000})).await;
    assert_eq!(port["error"]["data"]["field"], "port");
    world.end().await;
}

#[tokio::test]
async fn a_service_offers_what_works_with_it() {
    let both = [
        "daemon.tasks",
        "daemon.queues",
        "daemon.groups",
        "daemon.config",
        "daemon.rss",
        "daemon.webhooks",
        "daemon.selections",
        "agent.gateway",
        "agent.externalCapture",
        "agent.sparseTasks",
        "daemon.plugins",
    ];
    for (edition, files) in [(Edition::Headless, Some("daemon.files")), (Edition::Desktop, None)] {
        let world = World::with_daemon(|config| config.edition = edition).await;
        let mut client = Client::open(&world).await;
        let expected: Vec<_> = both.into_iter().chain(files).collect();
        assert_eq!(client.hello["capabilities"], json!(expected));
        // Each of the groups answers.
        for method in [
            "daemon.task.list",
            "daemon.queue.list",
            "daemon.group.list",
            "daemon.config.get",
            "daemon.plugin.list",
            "agent.gateway.get",
            "agent.capture.list",
        ] {
            let answer = client.call(method, json!({})).await;
            assert!(answer.get("result").is_some(), "{method}: {answer}");
        }
        let export = client.call("daemon.diagnostics.prepareLogExport", json!({})).await;
        let id = export["result"]["exportId"].as_str().unwrap();
        let answer = world.get(&format!("/api/web/exports/{id}")).await;
        assert_eq!(answer.status == 200, files.is_some(), "{answer:?}");
        world.end().await;
    }
}

#[tokio::test]
async fn an_export_is_prepared_by_a_call_and_fetched_once() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    let prepared = client.call("daemon.diagnostics.prepareLogExport", json!({})).await;
    let path = format!("/api/web/exports/{}", prepared["result"]["exportId"].as_str().unwrap());
    let ticket = world
        .ask("POST /api/web/tickets", &json!({"path": path}).to_string())
        .await;
    let ticket = ticket.json()["ticket"].as_str().unwrap().to_owned();
    let export = world.send(&format!("GET {path}?ticket={ticket}"), &[], "").await;
    assert_eq!(
        (export.status, export.header("content-type")),
        (200, Some("application/json"))
    );
    let name = "attachment; filename=\"svc-diagnostics.json\"";
    assert_eq!(export.header("content-disposition"), Some(name));
    assert!(export.json().is_object());
    assert_eq!(world.get(&path).await.status, 404);
    world.end().await;
}
