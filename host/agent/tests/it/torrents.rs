//! Torrents over the management API, and questions of tasks over `/rpc`.

use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::Client,
    world::{PATIENCE, World},
};

/// A metainfo file of two files of the same size, in so many pieces, that nobody has.
fn torrent(pieces: usize) -> Vec<u8> {
    let size = pieces * 8;
    let mut text = b"d4:infod5:filesl".to_vec();
    for file in ["a", "b"] {
        text.extend(format!("d6:lengthi{size}e4:pathl1:{file}ee").as_bytes());
    }
    let hashes = 20 * pieces;
    text.extend(format!("e4:name5:films12:piece lengthi16e6:pieces{hashes}:").as_bytes());
    text.extend(std::iter::repeat_n(7, hashes));
    text.extend(b"ee");
    text
}

async fn add(world: &World, pieces: usize) -> support::Answer {
    let torrent = BASE64.encode(&torrent(pieces));
    let body = json!({"url": "", "torrentB64": torrent, "startPaused": true}).to_string();
    world.ask("POST /api/v1/tasks", &body).await
}

#[tokio::test]
async fn a_torrent_is_added_shown_changed_and_exported() {
    let world = World::new().await;
    let made = add(&world, 2).await;
    assert_eq!(made.status, 200, "{made:?}");
    let id = made.json()["taskId"].as_str().unwrap().to_owned();
    let path = |rest: &str| format!("/api/v1/tasks/{id}/{rest}");
    let shown = world.get(&path("torrent")).await.json();
    assert_eq!((&shown["name"], &shown["fileCount"]), (&json!("films"), &json!(2)));
    let files = world.get(&path("files?offset=1")).await.json();
    assert_eq!((&files["files"][0]["path"], &files["total"]), (&json!("b"), &json!(2)));
    assert_eq!(world.get(&path("files?limit=0")).await.status, 400);
    assert_eq!(world.get(&path("pieces")).await.json()["bitfield"], "00");
    assert_eq!(world.get(&path("peers")).await.json(), json!({"peers": []}));
    assert_eq!(world.get(&path("trackers")).await.json(), json!({"trackers": []}));
    let select = format!("PUT {}", path("torrent"));
    assert_eq!(world.ask(&select, r#"{"files":[1]}"#).await.status, 200);
    assert_eq!(world.get(&path("files")).await.json()["files"][0]["wanted"], false);
    assert_eq!(world.ask(&select, r#"{"files":[2]}"#).await.status, 400);
    let limits = format!("PUT {}", path("seeding"));
    assert_eq!(world.ask(&limits, r#"{"ratioLimitMilli":1500}"#).await.status, 200);
    let task = world.get(&format!("/api/v1/tasks/{id}")).await.json();
    assert_eq!(task["seedRatioLimitMilli"], 1500);
    let file = world.get(&path("torrent/file")).await;
    assert_eq!((file.status, &file.body), (200, &torrent(2)));
    // It is not running.
    for rest in ["recheck", "reannounce"] {
        assert_eq!(world.ask(&format!("POST {}", path(rest)), "").await.status, 409);
    }
    let twice = add(&world, 2).await;
    assert_eq!((twice.status, &twice.json()["code"]), (409, &json!("torrent-exists")));
    assert!(twice.json()["message"].as_str().unwrap().contains(&id), "{twice:?}");
    let session = world.get("/api/v1/torrents/session").await.json();
    assert_eq!(session["isRunning"], false);
    let lists = world.ask("POST /api/v1/torrents/tracker-lists/refresh", "").await;
    assert_eq!((lists.status, &lists.json()["success"]), (200, &json!(false)));
    world.end().await;
}

#[tokio::test]
async fn a_large_torrent_file_takes_another_way_to_the_daemon() {
    let world = World::new().await;
    let made = add(&world, 40_000).await;
    assert_eq!(made.status, 200, "{made:?}");
    let id = made.json()["taskId"].as_str().unwrap().to_owned();
    let shown = world.get(&format!("/api/v1/tasks/{id}/torrent")).await.json();
    assert_eq!(shown["pieces"], 40_000);
    let blob = world.ask("POST /api/web/blobs/torrents", "no torrent").await.json()["blobId"].clone();
    let body = json!({"url": "", "torrentBlobId": blob}).to_string();
    let refused = world.ask("POST /api/v1/tasks", &body).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    world.end().await;
}

/// The kinds of the daemon's events that a client got, and their data.
fn told<'c>(client: &'c Client, kind: &'c str) -> impl Iterator<Item = &'c Value> {
    let events = client.events.iter().map(|told| &told["event"]["event"]);
    let of_daemon = events
        .filter(|event| event["type"] == "daemon")
        .map(|event| &event["data"]);
    of_daemon
        .filter(move |event| event["type"] == kind)
        .map(|event| &event["data"])
}

#[tokio::test]
async fn a_client_that_listens_is_asked_which_files_also_after_a_restart_of_the_daemon() {
    let mut world = World::new().await;
    let mut client = Client::open(&world).await;
    client.call("system.snapshot", json!({})).await;
    let config = client.call("daemon.config.get", json!({})).await["result"].clone();
    let off = json!({"bt_enable_dht": "false", "bt_enable_lsd": "false", "bt_enable_upnp": "false"});
    let patch = json!({"expectedRevision": config["revision"], "values": off});
    assert!(client.call("daemon.config.patch", patch).await["error"].is_null());
    client.call("daemon.selection.subscribe", json!({})).await;
    world.end_daemon().await;
    world.start_daemon().await;
    let request = json!({"url": "", "torrentB64": BASE64.encode(&torrent(2)), "torrent": {"askForFiles": true}});
    // The subscription is renewed by itself, a moment after the daemon is there.
    let asked = async {
        loop {
            let made = client.call("daemon.task.create", json!({"request": request})).await;
            let id = made["result"]["taskId"].clone();
            assert!(id.is_string(), "{made}");
            for _ in 0..50 {
                client.call("system.ping", json!({})).await;
                if let Some(question) = told(&client, "selectionPending").next() {
                    return (id, question.clone());
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            client.call("daemon.task.delete", json!({"taskId": id})).await;
        }
    };
    let (id, question) = timeout(PATIENCE, asked).await.unwrap();
    assert_eq!(question["taskId"], id);
    let snapshot = client.call("system.snapshot", json!({})).await;
    let pending = &snapshot["result"]["body"]["snapshot"]["daemon"]["pendingSelections"];
    assert_eq!(pending[0]["requestId"], question["requestId"]);
    let answer = json!({"requestId": question["requestId"], "outcome": {"kind": "cancelled"}});
    assert!(client.call("daemon.selection.resolve", answer).await["error"].is_null());
    assert_eq!(told(&client, "selectionResolved").count(), 1);
    let paused =
        async { while client.call("daemon.task.get", json!({"taskId": id})).await["result"]["status"] != 2 {} };
    timeout(PATIENCE, paused).await.unwrap();
    client.call("daemon.selection.unsubscribe", json!({})).await;
    world.end().await;
}
