//! A daemon that ends, restarts, stops responding, or has the wrong version.

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::Client,
    world::{PATIENCE, World},
};

async fn make(world: &World, name: &str) -> String {
    let body = json!({"url": format!("http://127.0.0.1:9/{name}"), "startPaused": true}).to_string();
    let made = world.ask("POST /api/v1/tasks", &body).await;
    assert_eq!(made.status, 200, "{made:?}");
    made.json()["taskId"].as_str().unwrap().to_owned()
}

async fn ids(world: &World) -> Vec<Value> {
    let tasks = world.get("/api/v1/tasks").await.json();
    tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["taskId"].clone())
        .collect()
}

#[tokio::test]
async fn clients_stay_connected_while_the_daemon_restarts() {
    let mut world = World::new().await;
    let mut client = Client::open(&world).await;
    let before = make(&world, "before").await;
    let snapshot = client.call("system.snapshot", json!({})).await["result"].clone();

    world.end_daemon().await;
    for (line, status) in [
        ("GET /api/v1/tasks", 503),
        ("GET /api/v1/queues", 503),
        ("POST /api/v1/tasks", 503),
        ("PUT /api/v1/tasks/pause", 503),
        ("GET /api/web/files/tasks/a", 503),
        ("GET /api/v1/info", 200),
        ("GET /ping", 200),
    ] {
        let answer = world.ask(line, r#"{"url":"http://127.0.0.1:9/x"}"#).await;
        assert_eq!(answer.status, status, "{line}: {answer:?}");
    }
    for method in ["daemon.task.list", "daemon.queue.list", "daemon.task.pauseAll"] {
        let refused = client.call(method, json!({})).await["error"]["data"].clone();
        assert_eq!(
            (&refused["code"], &refused["retryable"]),
            (&json!("unavailable"), &json!(true)),
            "{method}"
        );
    }

    world.start_daemon().await;
    assert_eq!(ids(&world).await, [json!(before)]);
    let after = make(&world, "after").await;
    assert_eq!(ids(&world).await, [json!(after), json!(before)]);
    let listed = client.call("daemon.task.list", json!({})).await;
    assert_eq!(listed["result"].as_array().unwrap().len(), 2);
    let mut told = Vec::new();
    for (event, sequence) in client.events.iter().zip(snapshot["sequence"].as_u64().unwrap() + 1..) {
        assert_eq!(event["sequence"], sequence);
        told.push(event["event"]["event"].clone());
    }
    let connection: Vec<_> = told
        .iter()
        .filter(|event| event["type"] == "daemonConnectionChanged")
        .collect();
    let data = |is_there: bool| json!({"type": "daemonConnectionChanged", "data": is_there});
    assert_eq!(connection, [&data(false), &data(true)]);
    assert!(
        told.iter().any(|event| event["type"] == "daemonSnapshotReplaced"),
        "{told:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn calls_right_after_the_start_wait_for_the_daemon() {
    let mut world = World::without_daemon(|config| config.preset_key = Some(crate::world::preset())).await;
    let (mut reads, mut commands) = (Client::open(&world).await, Client::open(&world).await);
    for (client, method) in [
        (&mut reads, "daemon.task.list"),
        (&mut commands, "daemon.task.pauseAll"),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        client.send(&call.to_string()).await;
    }
    let mut lists = Vec::new();
    for path in ["tasks", "queues", "rss"] {
        lists.push(world.begin(&format!("GET /api/v1/{path}")).await);
    }
    // What came later and concerns no task is answered meanwhile.
    assert_eq!(world.get("/api/v1/info").await.status, 200);
    assert!(reads.next().now_or_never().is_none() && commands.next().now_or_never().is_none());
    world.start_daemon().await;
    assert_eq!(reads.reply().await["result"], json!([]));
    assert_eq!(commands.reply().await["result"], json!({"ok": true}));
    for list in &mut lists {
        list.wait_for_its_head().await;
        assert_eq!(list.status(), 200);
    }
    drop((reads, commands, lists));
    world.end().await;
}

#[tokio::test]
async fn a_lost_event_is_noticed_with_the_reply_and_everything_is_fetched_anew() {
    let mut world = World::without_daemon(|config| config.preset_key = Some(crate::world::preset())).await;
    let loses = world.through_a_middleman();
    world.start_daemon().await;
    let mut client = Client::open(&world).await;
    client.call("system.snapshot", json!({})).await;
    loses.store(true, Ordering::Release);
    let id = make(&world, "a").await;
    assert_eq!(world.get(&format!("/api/v1/tasks/{id}")).await.status, 200);
    until_anew(&mut client, 1).await;
    // A lost event that no call waits for is detected at the next one.
    loses.store(true, Ordering::Release);
    world.daemon().engine().resume_all().await.unwrap();
    until_anew(&mut client, 2).await;
    assert!(ids(&world).await == [json!(id)] && !loses.load(Ordering::Acquire));
    world.end().await;
}

/// Waits for this number of resynchronizations.
async fn until_anew(client: &mut Client, times: usize) {
    let told = async {
        let is_new = |event: &&Value| event["event"]["event"]["type"] == "daemonSnapshotReplaced";
        while client.events.iter().filter(is_new).count() < times {
            client.call("system.ping", json!({})).await;
        }
    };
    timeout(PATIENCE, told).await.unwrap();
}

#[tokio::test]
async fn a_daemon_of_another_version_is_asked_to_stop_and_not_used() {
    let mut world = World::without_daemon(|config| {
        config.preset_key = Some(crate::world::preset());
        config.version = "99.0.0".to_owned();
    })
    .await;
    world.run_daemon().await;
    timeout(PATIENCE, world.daemon().asked_to_stop()).await.unwrap();
    assert!(!world.agent.is_connected());
    let refused = async {
        loop {
            let answer = world.get("/api/v1/tasks").await;
            assert_eq!(answer.status, 503);
            let why = answer.json()["message"].to_string();
            if why.contains("version") {
                break why;
            }
        }
    };
    let why = timeout(PATIENCE, refused).await.unwrap();
    assert!(
        why.contains("(version 99.0.0)") && why.contains("asked to stop"),
        "{why}"
    );
    world.end().await;
}

#[tokio::test]
async fn an_answer_under_way_is_finished_and_no_new_connection_is_taken() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    let made = client.make_large(12).await;
    let address = world.address();
    let mut under_way = world.begin("GET /api/v1/tasks").await;
    under_way.wait_for_its_head().await;
    let finish = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        under_way.finish().await
    };
    let ((), answer) = tokio::join!(world.end_within(Duration::from_secs(20)), finish);
    assert_eq!(answer.json().as_array().unwrap().len(), made);
}
