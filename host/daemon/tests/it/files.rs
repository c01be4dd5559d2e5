//! The HTTP side: finished files, uploads and exports, and the key they need.

use std::time::{Duration, UNIX_EPOCH};

use protocol::{MAX_BLOB_BYTES, Method};
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn a_finished_file_is_served_whole_and_in_ranges() {
    let world = World::new().await;
    let mut client = world.client().await;
    client.snapshot().await;
    let id = client.create("fake://finish/%C3%BC.txt", false).await;
    client.until("taskChanged", |task| task["status"] == 3).await;
    let name = std::fs::read_dir(world.root.path().join("downloads"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .file_name();
    assert_eq!(
        std::path::Path::new(&name).extension(),
        Some("txt".as_ref()),
        "{name:?}"
    );
    let key = client.credential.clone();
    let get = |method: &str, more: &str| format!("{method} /files/tasks/{id} HTTP/1.1{more}");
    let (status, head, body) = world.http(&get("GET", ""), Some(&key), b"").await;
    assert_eq!((status, &body[..]), (200, &b"0123456789"[..]));
    assert!(head.contains("content-disposition: attachment; filename="), "{head}");
    assert!(head.contains("filename*=utf-8''"), "{head}");
    let tag = head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap()
        .to_owned();
    let (status, head, body) = world.http(&get("HEAD", ""), Some(&key), b"").await;
    assert_eq!((status, body.len()), (200, 0));
    assert!(head.contains("content-length: 10"), "{head}");
    let (status, head, body) = world.http(&get("GET", "\r\nRange: bytes=2-4"), Some(&key), b"").await;
    assert_eq!((status, &body[..]), (206, &b"234"[..]));
    assert!(head.contains("content-range: bytes 2-4/10"), "{head}");
    let current = format!("\r\nRange: bytes=-1\r\nIf-Range: {tag}");
    assert_eq!(world.http(&get("GET", &current), Some(&key), b"").await.0, 206);
    let old = "\r\nRange: bytes=-1\r\nIf-Range: \"old\"";
    assert_eq!(world.http(&get("GET", old), Some(&key), b"").await.0, 200);
    let (status, head, _) = world.http(&get("GET", "\r\nRange: bytes=10-"), Some(&key), b"").await;
    assert_eq!(status, 416);
    assert!(head.contains("content-range: bytes */10"), "{head}");
    for time in [
        UNIX_EPOCH - Duration::from_secs(1),
        UNIX_EPOCH + Duration::from_secs(1 << 38),
    ] {
        let file = std::fs::File::options()
            .write(true)
            .open(world.root.path().join("downloads").join(&name));
        file.unwrap().set_modified(time).unwrap();
        let (status, _, body) = world.http(&get("GET", ""), Some(&key), b"").await;
        assert_eq!((status, &body[..]), (200, &b"0123456789"[..]), "{time:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_said_to_be_missing_or_unfinished() {
    let world = World::new().await;
    let mut client = world.client().await;
    let id = client.create("fake://held/a", true).await;
    let key = client.credential.clone();
    let get = |id: &str| format!("GET /files/tasks/{id} HTTP/1.1");
    assert_eq!(world.http(&get(&id), Some(&key), b"").await.0, 409);
    assert_eq!(world.http(&get("none"), Some(&key), b"").await.0, 404);
    let unknown = "00000000-0000-4000-8000-000000000001";
    assert_eq!(world.http(&get(unknown), Some(&key), b"").await.0, 404);
    assert_eq!(world.http("PUT /files/tasks/x HTTP/1.1", Some(&key), b"").await.0, 405);
}

#[tokio::test]
async fn the_key_of_a_connection_ends_with_it() {
    let world = World::new().await;
    let client = world.client().await;
    let key = client.credential.clone();
    let get = "GET /files/tasks/none HTTP/1.1";
    assert_eq!(world.http(get, None, b"").await.0, 401);
    assert_eq!(world.http(get, Some("wrong"), b"").await.0, 401);
    assert_eq!(world.http(get, Some(&key), b"").await.0, 404);
    assert_eq!(world.http(get, Some(world.daemon.token().expose()), b"").await.0, 404);
    drop(client);
    let revoked = async { while world.http(get, Some(&key), b"").await.0 != 401 {} };
    tokio::time::timeout(crate::world::PATIENCE, revoked).await.unwrap();
}

#[tokio::test]
async fn uploads_are_bounded_and_used_once() {
    let world = World::with(|mut config| {
        let directory = config.data_dir.as_ref().unwrap().join("torrents");
        config.torrents = Some(transfer_torrent::Config::new(directory).unwrap());
        config
    })
    .await;
    let mut client = world.client().await;
    let key = client.credential.clone();
    let post = "POST /blobs/torrents HTTP/1.1";
    let (status, _, body) = world.http(post, Some(&key), b"bytes").await;
    assert_eq!(status, 200);
    let blob = serde_json::from_slice::<Value>(&body).unwrap()["blobId"].clone();
    let large = vec![0; MAX_BLOB_BYTES + 1];
    assert_eq!(world.http(post, Some(&key), &large).await.0, 413);
    assert_eq!(world.http(post, Some(&key), b"").await.0, 400);
    assert_eq!(world.http("POST /blobs/other HTTP/1.1", Some(&key), b"x").await.0, 404);
    assert_eq!(world.http(post, None, &large[..1000]).await.0, 401);
    let use_it = json!({"request": {"url": "fake://held/a"}, "torrentBlobId": blob});
    // It is no torrent; that it was found is told by the refusal, and that it is used up by the next.
    for expect in ["bencode", "used"] {
        let error = client.call(Method::TaskCreate, use_it.clone()).await.unwrap_err();
        assert!(error.message.contains(expect), "{}", error.message);
        assert_eq!(error.data.unwrap().field.as_deref(), Some("torrentBlobId"));
    }
}

#[tokio::test]
async fn an_export_is_fetched_once_and_holds_no_secret() {
    let world = World::new().await;
    let mut client = world.client().await;
    let patch = json!({"expectedRevision": 0, "values": {"proxy_password": "hunter2"}});
    let revision = client.call(Method::ConfigGet, json!({})).await.unwrap()["revision"].clone();
    let mut patch = patch;
    patch["expectedRevision"] = revision;
    client.call(Method::ConfigPatch, patch).await.unwrap();
    let export = client
        .call(Method::DiagnosticsPrepareLogExport, json!({}))
        .await
        .unwrap();
    let get = format!("GET /exports/{} HTTP/1.1", export["exportId"].as_str().unwrap());
    let (status, _, body) = world.http(&get, Some(&client.credential), b"").await;
    assert_eq!(status, 200);
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains("\"svc-daemon\"") && !text.contains("hunter2"), "{text}");
    assert_eq!(world.http(&get, Some(&client.credential), b"").await.0, 404);
}
