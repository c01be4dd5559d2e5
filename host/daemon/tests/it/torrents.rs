//! Torrents: their files as tasks, what is known of them, their settings, and which files are asked for.

use std::net::Ipv4Addr;

use data_encoding::BASE64;
use protocol::{ErrorCode, Method, Reason, RpcError};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::world::{Client, World};

/// A metainfo file of two files of ten bytes each below the directory `name`, whose pieces nobody has.
fn torrent(name: &str) -> Vec<u8> {
    let mut text = b"d8:announce27:http://127.0.0.1:1/announce7:comment2:hi4:infod5:filesl".to_vec();
    for file in ["a", "b"] {
        text.extend(format!("d6:lengthi10e4:pathl1:{file}ee").as_bytes());
    }
    text.extend(format!("e4:name{}:{name}12:piece lengthi10e6:pieces40:", name.len()).as_bytes());
    text.extend([7; 40]);
    text.extend(b"ee");
    text
}

fn b64(name: &str) -> String {
    BASE64.encode(&torrent(name))
}

/// A daemon whose torrents meet nobody.
async fn world() -> World {
    World::with(|mut config| {
        let directory = config.data_dir.as_ref().unwrap().join("torrents");
        let mut torrents = transfer_torrent::Config::new(directory).unwrap();
        torrents.settings.addresses = vec![Ipv4Addr::LOCALHOST.into()];
        config.torrents = Some(torrents);
        config
    })
    .await
}

impl Client<TcpStream> {
    async fn patch(&mut self, values: Value) -> Result<Value, RpcError> {
        let revision = self.call(Method::ConfigGet, json!({})).await.unwrap()["revision"].clone();
        let params = json!({"expectedRevision": revision, "values": values});
        self.call(Method::ConfigPatch, params).await
    }

    /// Nothing is sent beyond this machine from now on.
    async fn go_quiet(&mut self) {
        let off = json!({"bt_enable_dht": "false", "bt_enable_lsd": "false", "bt_enable_upnp": "false"});
        self.patch(off).await.unwrap();
    }

    async fn add(&mut self, request: Value) -> Result<String, RpcError> {
        let made = self.call(Method::TaskCreate, json!({"request": request})).await?;
        Ok(made["taskId"].as_str().unwrap().to_owned())
    }

    async fn of(&mut self, method: Method, task: &str) -> Value {
        self.call(method, json!({"taskId": task})).await.unwrap()
    }
}

fn why(error: &RpcError) -> (ErrorCode, &str, &str) {
    let data = error.data.as_ref().expect("an application error");
    (data.code, data.field.as_deref().unwrap_or(""), &error.message)
}

#[tokio::test]
async fn a_torrent_file_becomes_a_task_that_says_what_is_in_it() {
    let world = world().await;
    let mut client = world.client().await;
    let request = json!({"url": "", "torrentB64": b64("films"), "startPaused": true,
        "torrent": {"files": [1], "sequential": true}});
    let task = client.add(request).await.unwrap();
    let shown = client.of(Method::TaskGet, &task).await;
    let hash = shown["infoHash"].as_str().unwrap().to_owned();
    assert_eq!(shown["url"], format!("magnet:?xt=urn:btih:{hash}&dn=films&xl=20"));
    let torrent = client.of(Method::TorrentGet, &task).await;
    let expect = json!({"infoHash": hash, "name": "films", "hasMetadata": true, "isMultiFile": true, "fileCount": 2,
        "totalBytes": 20, "pieces": 2, "piecesHave": 0, "comment": "hi", "isRunning": false,
        "trackers": [["http://127.0.0.1:1/announce"]]});
    for (member, value) in expect.as_object().unwrap() {
        assert_eq!(&torrent[member], value, "{member}");
    }
    assert_eq!(
        (&torrent["options"]["files"], &torrent["options"]["sequential"]),
        (&json!([1]), &json!(true))
    );
    let page = json!({"taskId": task, "offset": 1, "limit": 1});
    let files = client.call(Method::TorrentFiles, page).await.unwrap();
    assert_eq!((&files["total"], &files["files"][0]["path"]), (&json!(2), &json!("b")));
    assert_eq!(files["files"][0]["index"], 1);
    let export = client.of(Method::TorrentExport, &task).await;
    assert_eq!(export["torrentB64"], b64("films"));
    assert_eq!(client.of(Method::TorrentPeers, &task).await, json!({"peers": []}));
    assert_eq!(
        client.of(Method::TorrentTrackers, &task).await["trackers"][0]["status"],
        "waiting"
    );
    assert_eq!(client.of(Method::TorrentPieces, &task).await["bitfield"], "00");
    assert_eq!(
        client.call(Method::TorrentSession, json!({})).await.unwrap()["isRunning"],
        false
    );
    let other = client.create("fake://held/a", true).await;
    let refused = client
        .call(Method::TorrentGet, json!({"taskId": other}))
        .await
        .unwrap_err();
    assert_eq!(why(&refused).0, ErrorCode::Conflict);
}

#[tokio::test]
async fn what_is_kept_of_a_torrent_outlives_a_restart_and_not_its_task() {
    let world = world().await;
    let stored = || std::fs::read_dir(world.data("torrents")).unwrap().count();
    let mut client = world.client().await;
    let request = json!({"url": "", "torrentB64": b64("films"), "startPaused": true});
    let task = client.add(request).await.unwrap();
    assert!(stored() > 0);
    client
        .call(Method::TaskDelete, json!({"taskId": task, "deleteFiles": true}))
        .await
        .unwrap();
    let gone = async { while stored() > 0 {} };
    tokio::time::timeout(crate::world::PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_torrent_belongs_to_one_task() {
    let world = world().await;
    let mut client = world.client().await;
    let request = json!({"url": "", "torrentB64": b64("films"), "startPaused": true});
    let owner = client.add(request.clone()).await.unwrap();
    let twice = client.add(request).await.unwrap_err();
    assert_eq!(why(&twice).0, ErrorCode::Conflict);
    assert!(twice.message.contains(&owner), "{}", twice.message);
    assert_eq!(twice.data.unwrap().reason, Some(Reason::TorrentExists));
}

#[tokio::test]
async fn a_request_for_a_torrent_that_makes_no_sense_is_refused_by_its_field() {
    let world = world().await;
    let mut client = world.client().await;
    let other = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567";
    for (request, field, part) in [
        (json!({"url": "", "torrentB64": "?"}), "torrentB64", "base64"),
        (json!({"url": "", "torrentB64": "aGk="}), "torrentB64", ""),
        (json!({"url": "", "torrentBlobId": "none"}), "torrentBlobId", "upload"),
        (
            json!({"url": "", "torrentB64": b64("a"), "torrentBlobId": "x"}),
            "torrentBlobId",
            "exclude",
        ),
        (json!({"url": other, "torrentB64": b64("a")}), "url", "another torrent"),
        (
            json!({"url": "", "torrentB64": b64("a"), "mirrors": ["http://a.test/"]}),
            "mirrors",
            "webseeds",
        ),
        (
            json!({"url": "", "torrentB64": b64("a"), "torrent": {"files": [2]}}),
            "torrent.files",
            "has 2",
        ),
        (
            json!({"url": "", "torrentB64": b64("a"), "checksum": "md5=d41d8cd98f00b204e9800998ecf8427e"}),
            "checksum",
            "",
        ),
        (json!({"url": "magnet:?dn=nothing"}), "url", "info hash"),
        (json!({"url": "magnet:?xt=urn:btmh:1220aa"}), "url", "version 2"),
    ] {
        let refused = client.add(request.clone()).await.unwrap_err();
        let (code, named, message) = why(&refused);
        assert_eq!((code, named), (ErrorCode::InvalidArgument, field), "{request}");
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(client.call(Method::TaskList, json!({})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn the_settings_of_torrents_are_checked_together() {
    let world = world().await;
    let mut client = world.client().await;
    let refused = client.patch(json!({"bt_port_start": "9000"})).await.unwrap_err();
    assert_eq!(why(&refused).1, "bt_port_end");
    let values = json!({"bt_port_start": "9000", "bt_port_end": "9010", "bt_custom_trackers": "udp://t.test:1"});
    let shown = client.patch(values).await.unwrap();
    assert_eq!(shown["values"]["bt_port_end"], "9010");
    assert_eq!(shown["values"]["bt_custom_trackers"], "udp://t.test:1");
    assert_eq!(shown["values"]["bt_enable_dht"], "true");
    let none = client.call(Method::TorrentRefreshTrackerLists, json!({})).await;
    assert_eq!(none.unwrap()["totalSources"], 0);
    let session = client.call(Method::TorrentSession, json!({})).await.unwrap();
    assert_eq!(session["isRunning"], false, "nothing begins it");
}

#[tokio::test]
async fn a_task_asks_which_files_while_a_client_listens() {
    let world = world().await;
    let mut client = world.client().await;
    client.go_quiet().await;
    client.snapshot().await;
    client.call(Method::SelectionSubscribe, json!({})).await.unwrap();
    let unknown = json!({"requestId": "x.1", "outcome": {"kind": "cancelled"}});
    let refused = client.call(Method::SelectionResolve, unknown).await.unwrap_err();
    assert_eq!(why(&refused).0, ErrorCode::NotFound);
    let request = json!({"url": "", "torrentB64": b64("films"), "torrent": {"askForFiles": true}});
    let task = client.add(request).await.unwrap();
    let question = client.until("selectionPending", |_| true).await;
    assert_eq!(
        (&question["taskId"], &question["kind"]["fileCount"]),
        (&json!(task), &json!(2))
    );
    let pending = client.snapshot().await.1["pendingSelections"].clone();
    assert_eq!(pending, json!([question]));
    let too_many = json!({"requestId": question["requestId"], "outcome": {"kind": "bt", "indices": [2]}});
    let refused = client.call(Method::SelectionResolve, too_many).await.unwrap_err();
    assert_eq!(why(&refused).1, "outcome.indices");
    let answer = json!({"requestId": question["requestId"], "outcome": {"kind": "bt", "indices": [1]}});
    client.call(Method::SelectionResolve, answer).await.unwrap();
    client.until("selectionResolved", |_| true).await;
    let chosen = async { while client.of(Method::TorrentGet, &task).await["options"]["files"] != json!([1]) {} };
    tokio::time::timeout(crate::world::PATIENCE, chosen).await.unwrap();
    world.daemon.shutdown(crate::world::PATIENCE / 2).await;
}
