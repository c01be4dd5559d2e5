//! The page's way in: the probe of the key, and the session of `svc open`.

use agent::Edition;
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;

use crate::{
    client::{Client, upgrade},
    world::{KEY, World},
};

const PROBE: &str = "GET /api/web/session";
const EXCHANGE: &str = "POST /api/web/session";
const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn ticket(world: &World) -> String {
    let made = Client::open(world).await.call("agent.page.ticket", json!({})).await;
    assert_eq!(made["result"]["expiresInSecs"], 60, "{made}");
    made["result"]["ticket"].as_str().unwrap().to_owned()
}

/// The status of the exchange, and the credential.
async fn exchange(world: &World, ticket: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let headers = [&[JSON], headers].concat();
    let answer = world
        .send(EXCHANGE, &headers, json!({"ticket": ticket}).to_string())
        .await;
    let token = answer.json()["token"].as_str().unwrap_or_default().to_owned();
    (answer.status, token)
}

#[tokio::test]
async fn the_probe_answers_as_the_connection_would() {
    for edition in [Edition::Headless, Edition::Desktop] {
        let world = World::alone(edition, Some(KEY)).await;
        let probe = async |key: &str| {
            world
                .send(PROBE, &[("Authorization", &format!("Bearer {key}"))], "")
                .await
        };
        assert_eq!(probe(KEY).await.status, 204);
        assert_eq!(world.send(PROBE, &[], "").await.status, 401);
        let foreign = [
            ("Authorization", "Bearer the-access-key-1"),
            ("Origin", "https://evil.test"),
        ];
        assert_eq!(world.send(PROBE, &foreign, "").await.status, 403);
        for _ in 0..10 {
            assert_eq!(probe("wrong-key-1").await.status, 401);
        }
        let locked = probe(KEY).await;
        assert_eq!(locked.status, 429);
        assert!(locked.header("retry-after").is_some());
        world.end().await;
    }
}

#[tokio::test]
async fn a_ticket_gives_this_machines_browser_one_session_without_the_key() {
    let world = World::alone(Edition::Headless, Some(KEY)).await;
    let own = format!("http://{}", world.address());
    let ticket = ticket(&world).await;
    // The exchange is for pages of this service, on this machine, under its names; nothing of that uses the ticket up.
    for headers in [
        &[("Origin", "https://evil.test")][..],
        &[("Origin", "http://evil.test"), ("Host", "evil.test")],
        &[("X-Forwarded-For", "192.0.2.1")],
    ] {
        assert_eq!(exchange(&world, &ticket, headers).await.0, 403, "{headers:?}");
    }
    let (status, token) = exchange(&world, &ticket, &[("Origin", &own)]).await;
    assert_eq!(status, 200);
    assert_ne!(token, KEY);
    assert_eq!(exchange(&world, &ticket, &[("Origin", &own)]).await.0, 404, "once only");
    assert_eq!(exchange(&world, "made-up", &[("Origin", &own)]).await.0, 404);

    let bearer = format!("Bearer {token}");
    let probe = async |headers: &[(&str, &str)]| {
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        world.send(PROBE, &headers, "").await.status
    };
    assert_eq!(probe(&[("Origin", &own)]).await, 204);
    // Only from this machine, under its own name, by its own page.
    assert_eq!(probe(&[("X-Forwarded-For", "192.0.2.2")]).await, 401);
    assert_eq!(probe(&[("Origin", "https://evil.test")]).await, 403);
    assert_eq!(
        probe(&[("Host", "evil.test"), ("Origin", "http://evil.test")]).await,
        401
    );
    let protocols = format!("svc.rpc.v1, svc.token.{}", BASE64URL_NOPAD.encode(token.as_bytes()));
    let headers = [("sec-websocket-protocol", protocols.as_str()), ("origin", own.as_str())];
    let (mut page, chosen) = upgrade(&world, &headers).await.unwrap();
    assert_eq!(chosen.as_deref(), Some("svc.rpc.v1"));
    // Another key ends connections by the key, and not those of the user's own page.
    let mut other = Client::open(&world).await;
    let hello = json!({"clientName": "page", "clientVersion": "1", "minProtocolVersion": 1, "maxProtocolVersion": 1,
        "requestedRole": "agent"});
    assert_eq!(page.call("system.hello", hello).await["result"]["role"], "agent");
    other
        .call("agent.gateway.patch", json!({"userToken": "another-key-1"}))
        .await;
    assert_eq!(page.call("system.ping", json!({})).await["result"]["ok"], true);
    world.end().await;
}

#[tokio::test]
async fn a_desktop_without_a_key_is_opened_by_its_own_user() {
    let world = World::alone(Edition::Desktop, None).await;
    let without = world.send(EXCHANGE, &[JSON], r#"{"ticket":""}"#).await;
    assert_eq!(without.status, 404);
    assert_eq!(world.send(EXCHANGE, &[JSON], "{}").await.status, 400);
    assert_eq!(world.send(PROBE, &[], "").await.status, 403);
    world.end().await;
}
