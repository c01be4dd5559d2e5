//! `agent.task.open`: whose requests reach the desktop.

use agent::Edition;
use serde_json::{Value, json};

use crate::{
    client::{Client, upgrade},
    world::{KEY, World},
};

async fn open(client: &mut Client, task: &str) -> Value {
    let answer = client.call("agent.task.open", json!({"taskId": task})).await;
    answer["error"].clone()
}

#[tokio::test]
async fn only_the_own_user_opens_only_finished_files_and_only_on_a_desktop() {
    let world = World::with_daemon(|config| config.edition = Edition::Desktop).await;
    let opens = |hello: &Value| {
        hello["capabilities"]
            .as_array()
            .unwrap()
            .contains(&json!("agent.openFiles"))
    };
    assert!(
        !opens(&Client::open(&world).await.hello),
        "nothing attends to the desktop"
    );
    let _desk = world.agent.desk();
    let mut own = Client::open(&world).await;
    assert!(opens(&own.hello), "{}", own.hello);
    let unknown = open(&mut own, "nothing").await;
    assert_eq!(unknown["data"]["code"], "notFound", "{unknown}");
    let request = json!({"request": {"url": "http://127.0.0.1:9/a.bin", "startPaused": true}});
    let created = own.call("daemon.task.create", request).await;
    let task = created["result"]["taskId"]
        .as_str()
        .expect("a task was created")
        .to_owned();
    let unfinished = open(&mut own, &task).await;
    assert_eq!(unfinished["data"]["code"], "conflict", "{unfinished}");
    assert_eq!(unfinished["message"], "the download is not complete yet");

    // With the key, but from behind a proxy, so from any machine.
    let bearer = format!("Bearer {KEY}");
    for header in [("x-forwarded-for", "192.0.2.1"), ("host", "nas.example.com")] {
        let Ok((mut far, _)) = upgrade(&world, &[("authorization", &bearer), header]).await else {
            continue;
        };
        let hello = json!({"clientName": "test", "clientVersion": "1", "minProtocolVersion": 1,
            "maxProtocolVersion": 1, "requestedRole": "agent"});
        let greeted = far.call("system.hello", hello).await;
        assert!(!opens(&greeted["result"]), "{header:?}: {greeted}");
        for id in [&task, "nothing"] {
            let refused = open(&mut far, id).await;
            let message = refused["message"].as_str().unwrap_or_default();
            assert!(
                message.starts_with("only programs of the user"),
                "{header:?}: {refused}"
            );
        }
    }
    world.end().await;
}
