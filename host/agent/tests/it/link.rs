//! The device link over `/rpc`: two services pair, and their clients follow it by events. And what only the service itself
//! may call.

use agent::Edition;
use serde_json::{Value, json};

use crate::{
    client::Client,
    world::{self, World},
};

/// The data of the newest event of this type.
async fn event(client: &mut Client, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let found = client.events.iter().rev().map(|event| &event["event"]["event"]);
        let found = found
            .filter(|event| event["type"] == kind)
            .map(|event| &event["data"])
            .find(|data| is_it(data));
        if let Some(data) = found {
            return data.clone();
        }
        // Any call: its reply follows the events before it.
        client.call("system.ping", json!({})).await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn clients_follow_a_pairing_by_events_and_answer_it() {
    let (one, two) = (World::new().await, World::new().await);
    let (mut initiator, mut responder) = (Client::open(&one).await, Client::open(&two).await);
    initiator.call("system.snapshot", json!({})).await;
    let snapshot = responder.call("system.snapshot", json!({})).await;
    let snapshot = &snapshot["result"]["body"]["snapshot"];
    assert_eq!(snapshot["linkPairingRequests"], json!([]), "{snapshot}");
    let made = responder.call("agent.link.pairingCode", json!({})).await;
    let code = made["result"]["code"].as_str().unwrap();
    assert_eq!(made["result"]["addresses"], json!([]), "only this machine can connect");
    let begin = json!({"address": two.address().to_string(), "code": code});
    let begun = initiator.call("agent.link.pairBegin", begin).await;
    let begun = &begun["result"];
    let asked = event(&mut responder, "linkPairingRequestsChanged", |data| data[0].is_object()).await;
    assert_eq!(asked[0]["sas"], begun["sas"]);
    let answer = json!({"sessionId": asked[0]["sessionId"], "accept": true});
    let approved = responder.call("agent.link.approve", answer.clone()).await;
    assert_eq!(approved["result"], json!({"ok": true}), "{approved}");
    let again = responder.call("agent.link.approve", answer).await;
    assert_eq!(again["error"]["data"]["reason"], "pairingSessionExpired", "{again}");
    let finish = json!({"token": begun["token"], "accept": true});
    let finished = initiator.call("agent.link.pairFinish", finish).await;
    assert_eq!(finished["result"]["paired"], true, "{finished}");
    let known = event(&mut responder, "linkedDevicesChanged", |data| data[0].is_object()).await;
    assert_eq!(known[0]["acceptsTasks"], true, "{known}");
    let device = &finished["result"]["device"]["fingerprint"];
    let sent = json!({"fingerprint": device, "url": "http://192.0.2.1/f"});
    let sent = initiator.call("agent.link.dispatch", sent).await;
    let task = responder
        .call("daemon.task.get", json!({"taskId": sent["result"]["taskId"]}))
        .await;
    let sender = format!("link:{}", known[0]["fingerprint"].as_str().unwrap());
    assert_eq!(task["result"]["createdBy"], sender.as_str(), "{task}");
    let removed = initiator
        .call("agent.link.remove", json!({"fingerprint": device}))
        .await;
    assert_eq!(removed["result"], json!({"ok": true}), "{removed}");
    event(&mut responder, "linkedDevicesChanged", |data| data == &json!([])).await;
    one.end().await;
    two.end().await;
}

#[tokio::test]
async fn keys_of_the_link_are_no_clients_business() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    for method in ["daemon.link.load", "daemon.link.commit"] {
        let refused = client.call(method, json!({"rows": [], "now": 0})).await;
        assert_eq!(refused["error"]["data"]["code"], "unsupported", "{method}: {refused}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_link_that_is_off_is_not_there_for_devices() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    let ping = async || world.ask("GET /ping", "").await.json();
    client.call("agent.link.refresh", json!({})).await;
    assert!(ping().await["linkFingerprint"].is_string());
    let changed = client.call("agent.gateway.patch", json!({"linkEnabled": false})).await;
    assert_eq!(changed["result"]["linkEnabled"], false, "{changed}");
    assert_eq!(ping().await.get("linkFingerprint"), None);
    for path in ["pair/hello", "pair/reveal", "pair/confirm", "tasks", "info", "unpair"] {
        let answer = world.ask(&format!("POST /api/v1/link/{path}"), "{}").await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    world.end().await;
}

/// A device that pairs with a desktop, whose user confirms downloads that others hand over.
#[tokio::test]
async fn a_desktop_asks_its_user_before_a_received_download_begins() {
    let one = World::new().await;
    let mut two = World::without_daemon(|config| {
        config.edition = Edition::Desktop;
        config.preset_key = Some(world::preset());
    })
    .await;
    two.start_daemon().await;
    let (mut initiator, mut desktop) = (Client::open(&one).await, Client::open(&two).await);
    desktop.call("agent.gateway.patch", json!({"linkEnabled": true})).await;
    let made = desktop.call("agent.link.pairingCode", json!({})).await;
    let begin = json!({"address": two.address().to_string(), "code": made["result"]["code"]});
    let begun = initiator.call("agent.link.pairBegin", begin).await;
    let asked = desktop.call("agent.link.requests", json!({})).await;
    let answer = json!({"sessionId": asked["result"][0]["sessionId"], "accept": true});
    desktop.call("agent.link.approve", answer).await;
    let finish = json!({"token": begun["result"]["token"], "accept": true});
    let finished = initiator.call("agent.link.pairFinish", finish).await;
    let device = &finished["result"]["device"]["fingerprint"];
    let sent = json!({"fingerprint": device, "url": "http://192.0.2.1/f"});
    let sent = initiator.call("agent.link.dispatch", sent).await;
    let id = &sent["result"]["taskId"];
    let waiting = desktop.call("agent.capture.list", json!({})).await;
    assert_eq!(waiting["result"][0]["transactionId"], *id, "{waiting} {sent}");
    let task = desktop.call("daemon.task.get", json!({"taskId": id})).await;
    assert_eq!(task["error"]["data"]["code"], "notFound", "{task}");
    let accept = json!({"transactionId": id, "accepted": true});
    let accepted = desktop.call("agent.capture.resolve", accept).await;
    assert_eq!(accepted["result"]["taskId"], *id, "{accepted}");
    let task = desktop.call("daemon.task.get", json!({"taskId": id})).await;
    assert!(
        task["result"]["createdBy"].as_str().unwrap().starts_with("link:"),
        "{task}"
    );
    one.end().await;
    two.end().await;
}
