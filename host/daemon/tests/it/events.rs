//! Snapshots and the events that continue them.

use protocol::Method;
use serde_json::{Value, json};

use crate::world::{Ended, World};

#[tokio::test]
async fn ten_thousand_task_events_come_without_a_gap() {
    const TASKS: usize = 10_000;
    let world = World::new().await;
    let mut maker = world.memory_client().await;
    let mut reader = world.client().await;
    let (mut sequence, snapshot) = reader.snapshot().await;
    assert_eq!(snapshot["tasks"], json!([]));
    let mut making = tokio::task::JoinSet::new();
    making.spawn(async move {
        // As many in flight as the daemon allows, so that one commit serves many.
        for batch in 0..TASKS / 500 {
            for index in 0..500 {
                let url = format!("fake://held/{batch}-{index}");
                let request = json!({"request": {"url": url, "startPaused": true}});
                maker.begin(Method::TaskCreate.name(), request).await;
            }
            for _ in 0..500 {
                assert!(maker.reply().await.unwrap().outcome.is_ok());
            }
        }
        maker
    });
    let mut seen = std::collections::HashSet::new();
    while seen.len() < TASKS {
        let event = reader.event().await.unwrap();
        assert_eq!(event.sequence, sequence + 1);
        sequence = event.sequence;
        if event.event.event.kind == "taskChanged" {
            let task: Value = serde_json::from_str(event.event.event.data.get()).unwrap();
            seen.insert(task["taskId"].as_str().unwrap().to_owned());
        }
    }
    making.join_next().await.unwrap().unwrap();
    let (after, snapshot) = reader.snapshot().await;
    assert!(after >= sequence);
    assert_eq!(snapshot["tasks"].as_array().unwrap().len(), TASKS);
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_closed_and_starts_over() {
    let world = World::new().await;
    let mut maker = world.memory_client().await;
    // In memory, so that the connection's buffer is small and known.
    let mut reader = world.memory_client().await;
    reader.snapshot().await;
    let tasks: Vec<_> = (0..200)
        .map(|index| json!({"url": format!("fake://held/{index}"), "startPaused": true}))
        .collect();
    let made = maker
        .call(Method::TaskCreateMany, json!({"requests": tasks}))
        .await
        .unwrap();
    let ids = made["taskIds"].clone();
    // Each of these is an event of more than a hundred KiB, and the reader reads none.
    for index in 0..60 {
        for method in [Method::TaskResumeMany, Method::TaskPauseMany] {
            assert!(maker.call(method, json!({"taskIds": ids})).await.is_ok(), "{index}");
        }
    }
    let end = loop {
        match reader.event().await {
            Ok(_) => {}
            Err(end) => break end,
        }
    };
    assert_eq!(end, Ended(Some((4009, "event-gap".into()))));
    let mut reader = world.client().await;
    let (_, snapshot) = reader.snapshot().await;
    assert_eq!(snapshot["tasks"].as_array().unwrap().len(), 200);
}

#[tokio::test]
async fn a_write_is_answered_after_its_events() {
    let world = World::new().await;
    let mut client = world.memory_client().await;
    let (start, _) = client.snapshot().await;
    let request = json!({"request": {"url": "fake://held/a", "startPaused": true}});
    let (made, sequence) = client.full_call(Method::TaskCreate, request).await;
    let id = made.unwrap()["taskId"].clone();
    assert!(sequence.unwrap() > start);
    let told: Vec<Value> = client
        .events
        .iter()
        .filter(|event| event.event.event.kind == "taskChanged")
        .map(|event| serde_json::from_str(event.event.event.data.get()).unwrap())
        .collect();
    assert_eq!(told[0]["taskId"], id);
    assert_eq!(client.events.last().unwrap().sequence, sequence.unwrap());
}

#[tokio::test]
async fn what_names_tasks_is_answered_after_the_events_of_these() {
    let world = World::new().await;
    let mut client = world.memory_client().await;
    client.snapshot().await;
    let source = json!({"url": "http://127.0.0.1:1/feed", "autoDownload": false});
    let source = client.call(Method::RssCreateSource, source).await.unwrap();
    client.create("fake://held/a", true).await;
    let (_, at) = client.full_call(Method::TaskPauseMany, json!({"taskIds": []})).await;
    let (items, sequence) = client.full_call(Method::RssGetItems, source).await;
    assert_eq!(items.unwrap(), json!([]));
    assert!(sequence >= at && at.is_some(), "{sequence:?} {at:?}");
}

#[tokio::test]
async fn a_batch_is_told_of_in_order_and_in_few_events() {
    let world = World::new().await;
    let mut client = world.memory_client().await;
    // Above the most tasks of one event, above the number from which on events are streamed, and below it.
    for (count, events) in [(300, 2), (200, 1), (5, 1)] {
        let (_, _) = client.snapshot().await;
        client.events.clear();
        let tasks: Vec<_> = (0..count)
            .map(|index| json!({"url": format!("fake://held/{index}"), "startPaused": true}))
            .collect();
        let made = client
            .call(Method::TaskCreateMany, json!({"requests": tasks}))
            .await
            .unwrap();
        let mut told = Vec::new();
        for _ in 0..events {
            let event = client.until("tasksSnapshot", |_| true).await;
            assert_eq!(event["deletedTaskIds"], json!([]));
            told.extend(
                event["tasks"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|task| task["taskId"].clone()),
            );
        }
        let mut ids = made["taskIds"].as_array().unwrap().clone();
        assert_eq!((ids.len(), &told), (count, &ids));
        ids.push(ids[0].clone());
        ids.push(json!("no-such-task"));
        let gone = client
            .call(Method::TaskDeleteMany, json!({"taskIds": ids}))
            .await
            .unwrap();
        assert_eq!(gone, json!({"ok": true}));
        let told = client.until("tasksSnapshot", |_| true).await;
        assert_eq!(told["deletedTaskIds"].as_array().unwrap().len(), count);
        let list = client.call(Method::TaskList, json!({})).await.unwrap();
        assert_eq!(list, json!([]));
    }
}

#[tokio::test]
async fn an_empty_batch_does_nothing() {
    let world = World::new().await;
    let mut client = world.memory_client().await;
    let (before, _) = client.snapshot().await;
    for method in [Method::TaskPauseMany, Method::TaskResumeMany, Method::TaskDeleteMany] {
        let (done, sequence) = client.full_call(method, json!({"taskIds": []})).await;
        assert_eq!((done.unwrap(), sequence), (json!({"ok": true}), Some(before)));
    }
}

#[tokio::test]
async fn runs_are_sampled_and_sums_are_told() {
    let world = World::new().await;
    let mut client = world.client().await;
    client.snapshot().await;
    let id = client.create("fake://held/a", false).await;
    let runtime = client
        .until("taskRuntimeChanged", |data| data["downloadBps"] == 7)
        .await;
    assert_eq!(runtime["taskId"], id.as_str());
    let stats = client
        .until("runtimeStatsChanged", |data| data["totalDownloadBps"] == 7)
        .await;
    assert_eq!(stats["activeTasks"], 1);
    client.call(Method::TaskPause, json!({"taskId": id})).await.unwrap();
    client
        .until("runtimeStatsChanged", |data| {
            data["activeTasks"] == 0 && data["totalDownloadBps"] == 0
        })
        .await;
}
