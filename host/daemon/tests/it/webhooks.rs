//! `daemon.webhook.*`, the setting `webhook.endpoints`, and the events of deliveries.

use protocol::{ErrorCode, Method};
use serde_json::{Value, json};
use store::sql::Connection;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};

use crate::world::World;

/// Answers every request with 200 and this body, and passes the requests on.
async fn receiver(answer: &'static str) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::unbounded_channel();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = String::new();
            while !is_whole(&request) {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).await.unwrap();
                request.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            }
            let length = answer.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    serving.detach_all();
    (port, requests)
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let lower = head.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next());
    length.is_some_and(|length| length.parse() == Ok(body.len()))
}

fn endpoint(port: u16) -> Value {
    json!({
        "id": "own", "url": format!("http://127.0.0.1:{port}/canary-path-in-url"), "allowHttp": true, "allowPrivate": true,
        "headers": {"X-Key": "canary-header"}, "signSecret": "canary-secret",
        "events": ["task.created", "task.completed"],
    })
}

fn patch(revision: u64, endpoints: &Value) -> Value {
    json!({"expectedRevision": revision, "values": {"webhook.endpoints": endpoints.to_string()}})
}

#[tokio::test]
async fn a_webhook_of_a_queue_that_does_not_exist_is_refused_by_name() {
    let world = World::new().await;
    let mut client = world.client().await;
    client
        .call(Method::QueueCreate, json!({"name": "night"}))
        .await
        .unwrap();
    let queues = client.call(Method::QueueList, json!({})).await.unwrap();
    let mut queues = queues.as_array().unwrap().iter();
    let queue = queues.find(|queue| queue["name"] == "night").unwrap();
    let queue = queue["queueId"].as_str().unwrap().to_owned();
    let of = |queue: &str| json!([{"id": "own", "url": "https://a.example/x", "queueId": queue}]);
    let error = client
        .call(Method::ConfigPatch, patch(0, &of("nowhere")))
        .await
        .unwrap_err();
    assert_eq!(error.application_code(), Some(ErrorCode::InvalidArgument));
    assert_eq!(error.data.as_ref().unwrap().field.as_deref(), Some("webhook.endpoints"));
    let named = "webhook own, queueId: there is no queue nowhere";
    assert!(error.message.starts_with(named), "{}", error.message);
    let saved = client.call(Method::ConfigPatch, patch(0, &of(&queue))).await.unwrap();
    // It stays when its queue is deleted, and other webhooks can be changed.
    client
        .call(Method::QueueDelete, json!({"queueId": queue}))
        .await
        .unwrap();
    let mut more = of(&queue);
    more.as_array_mut()
        .unwrap()
        .push(json!({"id": "more", "url": "https://b.example/x"}));
    let revision = saved["revision"].as_u64().unwrap();
    client.call(Method::ConfigPatch, patch(revision, &more)).await.unwrap();
}

#[tokio::test]
async fn endpoints_are_stored_sealed_and_shown_masked() {
    let world = World::new().await;
    let mut client = world.client().await;
    let before = client.call(Method::ConfigGet, json!({})).await.unwrap();
    assert_eq!(before["values"]["webhook.endpoints"], "");
    let revision = before["revision"].as_u64().unwrap();
    let (_, _) = client.snapshot().await;
    let saved = client
        .call(Method::ConfigPatch, patch(revision, &json!([endpoint(1)])))
        .await
        .unwrap();
    assert!(!saved.to_string().contains("canary"), "{saved}");
    let event = client.until("configChanged", |_| true).await;
    assert_eq!(event, saved);
    let masked: Value = serde_json::from_str(saved["values"]["webhook.endpoints"].as_str().unwrap()).unwrap();
    assert_eq!(masked[0]["url"], "http://127.0.0.1:1/***");
    assert_eq!(
        (&masked[0]["signSecret"], &masked[0]["headers"]["X-Key"]),
        (&json!("***"), &json!("***"))
    );
    // Nothing changes, so the revision stays.
    let revision = saved["revision"].as_u64().unwrap();
    let again = client
        .call(Method::ConfigPatch, patch(revision, &masked))
        .await
        .unwrap();
    assert_eq!(again["revision"], revision);
    let moved = json!([{"id": "own", "url": "https://other.example/x", "headers": {"X-Key": "***"}}]);
    let error = client
        .call(Method::ConfigPatch, patch(revision, &moved))
        .await
        .unwrap_err();
    assert_eq!(error.application_code(), Some(ErrorCode::InvalidArgument));
    assert!(
        error
            .message
            .contains("webhook own, headers: the stored value belongs to"),
        "{}",
        error.message
    );
    let stored = |connection: &Connection| {
        let sealed = connection.query_row("SELECT sealed FROM daemon_webhooks", [], |row| row.get(0));
        let sealed: Vec<u8> = sealed.unwrap();
        let text = String::from_utf8_lossy(&sealed);
        assert!(
            !text.is_empty() && !text.contains("canary") && !text.contains("127.0.0.1"),
            "{text}"
        );
    };
    let world = world.restart_with(stored).await;
    let mut client = world.client().await;
    let config = client.call(Method::ConfigGet, json!({})).await.unwrap();
    assert_eq!(config["values"], saved["values"]);
    let unset = json!({"expectedRevision": revision, "unset": ["webhook.endpoints"]});
    let config = client.call(Method::ConfigPatch, unset).await.unwrap();
    assert_eq!(config["values"]["webhook.endpoints"], "");
}

#[tokio::test]
async fn deliveries_are_events_and_part_of_the_snapshot() {
    let (port, mut requests) = receiver("canary-header is yours").await;
    let world = World::new().await;
    let mut client = world.client().await;
    let config = client.call(Method::ConfigGet, json!({})).await.unwrap();
    let revision = config["revision"].as_u64().unwrap();
    let (_, snapshot) = client.snapshot().await;
    assert_eq!(snapshot["webhookDeliveries"], json!([]));
    client
        .call(Method::ConfigPatch, patch(revision, &json!([endpoint(port)])))
        .await
        .unwrap();
    let task = client.create("fake://finish/a?token=canary-query", false).await;
    for kind in ["task.created", "task.completed"] {
        let request = requests.recv().await.unwrap();
        assert!(
            request.to_ascii_lowercase().contains(&format!("x-svc-event: {kind}")),
            "{request}"
        );
        assert!(
            request.contains(&task) && !request.contains("canary-query"),
            "{request}"
        );
        client
            .until("webhooksChanged", |changed| {
                let mut all = changed.as_array().unwrap().iter();
                all.any(|delivery| delivery["event"] == kind && delivery["status"] == "delivered")
            })
            .await;
    }
    let (_, snapshot) = client.snapshot().await;
    let deliveries = snapshot["webhookDeliveries"].as_array().unwrap().clone();
    let events: Vec<_> = deliveries
        .iter()
        .map(|delivery| delivery["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["task.completed", "task.created"]);
    assert_eq!(deliveries[0]["responseBody"], "*** is yours");
    assert!(!snapshot.to_string().contains("canary-header"));
    let log = client.call(Method::WebhookGet, json!({})).await.unwrap();
    assert_eq!(log, json!({"deliveries": deliveries, "dropped": 0, "missed": 0}));
    client.events.clear();
    client.call(Method::WebhookClearDeliveries, json!({})).await.unwrap();
    let kinds: Vec<_> = client
        .events
        .iter()
        .map(|event| event.event.event.kind.as_str())
        .collect();
    assert!(kinds.contains(&"webhooksCleared"), "{kinds:?}");
    let log = client.call(Method::WebhookGet, json!({})).await.unwrap();
    assert_eq!(log["deliveries"], json!([]));
}

#[tokio::test]
async fn a_draft_is_tested_once_with_the_stored_secrets() {
    let (port, mut requests) = receiver("ok").await;
    let world = World::new().await;
    let mut client = world.client().await;
    let config = client.call(Method::ConfigGet, json!({})).await.unwrap();
    let revision = config["revision"].as_u64().unwrap();
    let saved = client.call(Method::ConfigPatch, patch(revision, &json!([endpoint(port)])));
    let saved = saved.await.unwrap();
    let mut draft: Value = serde_json::from_str(saved["values"]["webhook.endpoints"].as_str().unwrap()).unwrap();
    draft[0]["preset"] = json!("slack");
    let params = json!({"endpoint": draft[0], "event": "task.failed"});
    let delivery = client.call(Method::WebhookTest, params).await.unwrap();
    assert_eq!(
        (&delivery["status"], &delivery["test"]),
        (&json!("delivered"), &json!(true))
    );
    let request = requests.recv().await.unwrap();
    assert!(
        request.contains("canary-header") && request.contains("plain_text"),
        "{request}"
    );
    let log = client.call(Method::WebhookGet, json!({})).await.unwrap();
    assert_eq!(log["deliveries"], json!([delivery]));
    let mut private = draft[0].clone();
    private["allowPrivate"] = json!(false);
    let error = client
        .call(Method::WebhookTest, json!({"endpoint": private}))
        .await
        .unwrap_err();
    assert!(error.message.contains("set allowPrivate"), "{}", error.message);
    let unknown = json!({"event": "task.done"});
    let error = client.call(Method::WebhookSimulate, unknown).await.unwrap_err();
    assert!(error.message.contains("there are task.created"), "{}", error.message);
    let count = client.call(Method::WebhookSimulate, json!({})).await.unwrap();
    assert_eq!(count, json!({"count": 1}));
    let request = requests.recv().await.unwrap();
    assert!(request.contains("\"test\":true"), "{request}");
}
