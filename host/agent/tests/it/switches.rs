//! Settings that change at run time; each change affects the next request of another client.

use agent::Edition;
use serde_json::{Value, json};

use crate::{
    client::{Client, upgrade},
    world::{self, KEY, World},
};

const FOREIGN: (&str, &str) = ("Origin", "https://page.test");

async fn patch(client: &mut Client, patch: Value) -> Value {
    let patched = client.call("agent.gateway.patch", patch).await;
    assert!(patched["error"].is_null(), "{patched}");
    patched["result"].clone()
}

#[tokio::test]
async fn every_switch_counts_from_the_next_request() {
    let world = World::without_daemon(|config| {
        config.edition = Edition::Desktop;
        config.preset_key = Some(world::preset());
    })
    .await;
    let mut client = Client::open(&world).await;
    let bearer = format!("Bearer {KEY}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("X-Svc-Token", KEY),
        ("X-Svc-Client", "test"),
    ];
    for (switch, line) in [
        ("apiEnabled", "GET /api/v1/info"),
        ("apiEnabled", "GET /api/v1/docs"),
        ("apiEnabled", "GET /metrics"),
        ("mcpEnabled", "POST /mcp"),
        ("takeoverEnabled", "POST /download"),
        ("jsonrpcEnabled", "POST /jsonrpc"),
        ("jsonrpcEnabled", "POST /rpc"),
    ] {
        for is_on in [true, false, true] {
            patch(&mut client, json!({ switch: is_on })).await;
            let status = world.send(line, &headers, "").await.status;
            assert_eq!(status != 404, is_on, "{line} with {switch} {is_on}: {status}");
        }
    }
    for is_on in [true, false] {
        patch(&mut client, json!({ "corsEnabled": is_on })).await;
        let answer = world.send("POST /jsonrpc", &[FOREIGN], "{}").await;
        assert_eq!(answer.status != 403, is_on);
        assert_eq!(answer.header("access-control-allow-origin"), is_on.then_some("*"));
    }
    world.end().await;
}

#[tokio::test]
async fn a_new_key_counts_from_the_next_request_and_the_old_one_no_more() {
    let world = World::alone(Edition::Headless, Some(KEY)).await;
    let mut client = Client::open(&world).await;
    let made = patch(&mut client, json!({ "regenerateUserToken": true })).await;
    assert_eq!(made["userTokenConfigured"], true);
    let shown = client.call("agent.gateway.revealToken", json!({})).await;
    let new = format!("Bearer {}", shown["result"]["userToken"].as_str().unwrap());
    assert_eq!(world.get("/api/v1/info").await.status, 401);
    let answer = world.send("GET /api/v1/info", &[("Authorization", &new)], "").await;
    assert_eq!(answer.status, 200);
    assert!(upgrade(&world, &[("authorization", &new)]).await.is_ok());
    world.end().await;
}

#[tokio::test]
async fn a_port_and_the_network_count_from_the_next_start_and_the_status_says_so() {
    let world = World::alone(Edition::Desktop, Some(KEY)).await;
    let mut client = Client::open(&world).await;
    let opened = patch(&mut client, json!({ "lanEnabled": true })).await;
    assert_eq!(
        (&opened["lanEnabled"], &opened["restartRequired"]),
        (&json!(true), &json!(true))
    );
    let named = world.send("GET /ping", &[("Host", "nas.test")], "").await;
    assert_eq!(named.status, 403, "it is still on the loopback");
    world.end().await;
}
