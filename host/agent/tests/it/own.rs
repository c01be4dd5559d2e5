//! The pass from the lock file authorizes programs of the agent's own user like the access key, and no other client.

use agent::Edition;
use serde_json::json;
use tokio_tungstenite::tungstenite::{Message, protocol::CloseFrame};

use crate::{
    client::{Client, upgrade},
    world::{self, World},
};

/// The pass, as a program of the same user reads it.
fn pass(world: &World) -> String {
    let holder = agent::holder(&world.directory()).unwrap().expect("it runs");
    let pass = holder.pass.expect("it tells its user's programs what to show");
    format!("Bearer {}", pass.expose())
}

async fn greet(client: &mut Client) {
    let hello = json!({"clientName": "test", "clientVersion": "1", "minProtocolVersion": 1, "maxProtocolVersion": 1,
        "requestedRole": "agent"});
    let greeted = client.call("system.hello", hello).await;
    assert_eq!(greeted["result"]["role"], "agent", "{greeted}");
}

#[tokio::test]
async fn a_fresh_desktop_authorizes_its_own_user_but_no_proxy_or_page() {
    let world = World::alone(Edition::Desktop, None).await;
    let pass = pass(&world);
    let own = ("authorization", pass.as_str());
    let (mut client, _) = upgrade(&world, &[own]).await.unwrap();
    greet(&mut client).await;
    let origin = format!("http://{}", world.address());
    for (name, value) in [
        // A page, even of the service itself.
        ("origin", origin.as_str()),
        // A proxy, so the client may be remote.
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "localhost"),
        ("forwarded", "for=127.0.0.1"),
        // A foreign name that resolves to this machine.
        ("host", "evil.test"),
    ] {
        let refused = upgrade(&world, &[own, (name, value)]).await;
        assert_eq!(refused.err(), Some(403), "{name}: {value}");
    }
    for wrong in ["Bearer ", "Bearer wrong-key-1", &format!("{pass}X")] {
        assert_eq!(upgrade(&world, &[("authorization", wrong)]).await.err(), Some(403));
    }
    world.end().await;
}

#[tokio::test]
async fn a_pass_is_of_one_process() {
    let (one, other) = (
        World::alone(Edition::Desktop, None).await,
        World::alone(Edition::Desktop, None).await,
    );
    assert_ne!(pass(&one), pass(&other));
    let refused = upgrade(&one, &[("authorization", &pass(&other))]).await;
    assert_eq!(refused.err(), Some(403));
    one.end().await;
    other.end().await;
}

#[tokio::test]
async fn before_its_set_up_a_server_authorizes_no_pass() {
    let world = World::alone(Edition::Headless, None).await;
    let refused = upgrade(&world, &[("authorization", &pass(&world))]).await;
    assert_eq!(refused.err(), Some(403));
    world.end().await;
}

#[tokio::test]
async fn a_new_key_ends_what_came_with_the_old_one_and_not_its_own_users_programs() {
    let world = World::without_daemon(|config| {
        config.edition = Edition::Desktop;
        config.preset_key = Some(world::preset());
    })
    .await;
    let mut keyed = Client::open(&world).await;
    let (mut own, _) = upgrade(&world, &[("authorization", &pass(&world))]).await.unwrap();
    greet(&mut own).await;
    for key in ["another-key-1", "one-more-key-1", ""] {
        let patched = own.call("agent.gateway.patch", json!({ "userToken": key })).await;
        assert_eq!(patched["result"]["userTokenConfigured"], !key.is_empty(), "{patched}");
    }
    let end = loop {
        if let Message::Close(frame) = keyed.next().await {
            break frame;
        }
    };
    assert!(matches!(end, Some(CloseFrame { reason, .. }) if reason == "unauthorized"));
    world.end().await;
}
