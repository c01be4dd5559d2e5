//! Limits for clients that send too much or read too little.

use std::net::Ipv4Addr;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use crate::{
    client::Client,
    world::{KEY, World},
};

const WRONG: (&str, &str) = ("Authorization", "Bearer wrong-key-1");

#[tokio::test]
async fn a_reader_that_falls_behind_gets_a_gap() {
    let world = World::new().await;
    let (mut slow, mut busy) = (Client::open(&world).await, Client::open(&world).await);
    slow.call("system.snapshot", json!({})).await;
    let made = busy.make_large(20).await;
    loop {
        if let Message::Close(frame) = slow.next().await {
            let frame = frame.unwrap();
            assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4009, "event-gap"));
            break;
        }
    }
    // A new connection starts with a full allowance.
    let mut again = Client::open(&world).await;
    let snapshot = again.call("system.snapshot", json!({})).await;
    let tasks = &snapshot["result"]["body"]["snapshot"]["daemon"]["tasks"];
    assert_eq!(tasks.as_array().unwrap().len(), made);
    world.end().await;
}

#[tokio::test]
async fn the_seventeenth_slow_call_is_refused_and_others_are_not_held_up() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    // It accepts connections and sends nothing.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let params = json!({"proxyType": "http", "host": "127.0.0.1", "port": port});
    for id in 1..=17 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "daemon.config.proxyTest", "params": params});
        client.send(&call.to_string()).await;
    }
    let refused = client.reply().await;
    assert_eq!(refused["id"], 17, "{refused}");
    let data = &refused["error"]["data"];
    assert_eq!(
        (&data["code"], &data["retryable"]),
        (&json!("unavailable"), &json!(true))
    );
    let quick = client.call("daemon.task.pauseAll", json!({})).await;
    assert_eq!(quick["result"], json!({"ok": true}));
    drop(silent);
    world.end().await;
}

#[tokio::test]
async fn a_forwarded_address_is_believed_of_trusted_proxies_only() {
    let status = async |world: &World, key: (&str, &str), forwarded: &str| {
        let headers = [key, ("X-Forwarded-For", forwarded)];
        world.send("GET /api/v1/info", &headers, "").await.status
    };
    let bearer = format!("Bearer {KEY}");
    let right = ("Authorization", bearer.as_str());

    let world = World::with_daemon(|_| {}).await;
    for number in 1..=10 {
        assert_eq!(status(&world, WRONG, &format!("192.0.2.{number}")).await, 401);
    }
    assert_eq!(status(&world, right, "192.0.2.99").await, 429);
    world.end().await;

    let world = World::with_daemon(|config| {
        config.trusted_proxies = vec![Ipv4Addr::LOCALHOST.into(), Ipv4Addr::new(10, 0, 0, 1).into()];
    })
    .await;
    for number in 1..=10 {
        // Entries before the last untrusted hop are claims of the sender.
        let forwarded = format!("198.51.100.{number}, 192.0.2.1, 10.0.0.1");
        assert_eq!(status(&world, WRONG, &forwarded).await, 401);
    }
    assert_eq!(status(&world, right, "192.0.2.1").await, 429);
    assert_eq!(status(&world, right, "192.0.2.2").await, 200);
    assert_eq!(status(&world, right, "192.0.2.1, nonsense").await, 200);
    world.end().await;
}

#[tokio::test]
async fn allowing_every_origin_acts_at_once_and_lifts_no_other_check() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    let foreign = ("Origin", "https://page.test");
    let question = [
        foreign,
        ("Access-Control-Request-Method", "PUT"),
        ("Access-Control-Request-Headers", "x-svc-token, x-other"),
        ("Access-Control-Request-Private-Network", "true"),
    ];
    for is_on in [false, true, false] {
        let patched = client.call("agent.gateway.patch", json!({"corsEnabled": is_on})).await;
        assert_eq!(patched["result"]["corsEnabled"], is_on);
        let when = |value| is_on.then_some(value);
        let preflight = world.send("OPTIONS /api/v1/tasks", &question, "").await;
        assert_eq!(preflight.status, 204);
        for (name, value) in [
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"),
            ("access-control-allow-headers", "x-svc-token, x-other"),
            ("access-control-allow-private-network", "true"),
            ("access-control-allow-local-network", "true"),
            ("access-control-max-age", "600"),
        ] {
            assert_eq!(preflight.header(name), when(value), "{name}");
        }
        let refused = world.send("GET /api/v1/tasks", &[foreign], "").await;
        assert_eq!(
            (refused.status, refused.header("access-control-allow-origin")),
            (401, when("*"))
        );
        let bearer = format!("Bearer {KEY}");
        let allowed = world
            .send("GET /api/v1/tasks?limit=1", &[foreign, ("Authorization", &bearer)], "")
            .await;
        assert_eq!(
            (allowed.status, allowed.header("access-control-expose-headers")),
            (200, when("*"))
        );
        for line in ["POST /api/v1/setup", "GET /rpc"] {
            assert_eq!(
                world
                    .send(line, &[foreign, ("Authorization", &bearer)], "")
                    .await
                    .status,
                403,
                "{line}"
            );
        }
    }
    world.end().await;
}
