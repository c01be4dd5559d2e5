//! What a torrent can be given as, and how its peers are found.

use data_encoding::BASE64;
use e2e::Home;
use serde_json::json;
use support::{
    Content, Origin, Resource,
    swarm::{MakeTorrent, Opentracker, Tracker},
};

use super::{
    COMPLETED, MIB, PAUSED, PIECE, Shared, aria2, below, gid, peers, serve, wait_until, wait_until_complete,
    wait_until_failed,
};

#[test]
fn a_magnet_link_gets_its_metadata_and_file_from_libtorrent_that_a_tracker_knows() {
    let mut shared = Shared::one_file(1, 3 * MIB + 5);
    let tracker = Opentracker::start(&[&shared.made.hash]);
    for url in [tracker.http(), tracker.udp()] {
        shared.seed(&[&tracker.http()]);
        let sent = shared.libtorrent.uploaded();
        let home = Home::new();
        let service = serve(&home);
        let id = service.create(&json!({"url": shared.made.magnet(&format!("&tr={url}"))}));
        let task = wait_until_complete(&service, &id);
        assert_eq!(task["fileName"], "one.bin", "{task}");
        assert_eq!(task["totalBytes"], shared.content.len(), "{task}");
        shared.check(&home.downloads().join("one.bin"));
        assert_eq!(below(&home.downloads()), ["one.bin"]);
        let sent = shared.libtorrent.uploaded() - sent;
        assert_eq!(sent, shared.content.len(), "{url}: nothing is sent twice");
    }
}

#[test]
fn a_torrent_arrives_by_base64_and_by_a_link_that_answers_it() {
    let mut shared = Shared::one_file(2, MIB);
    let seeder = shared.seed(&[]);
    let tracker = Tracker::with_peers(&[seeder]);
    let url = tracker.url();
    let path = shared.source.path().join("one.bin");
    let made = shared.libtorrent.make(
        &path,
        &MakeTorrent {
            piece: PIECE,
            trackers: &[&url],
            ..MakeTorrent::default()
        },
    );
    let site = Origin::start(vec![
        Resource::new("/by-type", Content::bytes(made.bytes())).media_type("application/x-bittorrent"),
        Resource::new("/by-name.torrent", Content::bytes(made.bytes())),
    ]);
    let requests = [
        json!({"url": "", "torrentB64": BASE64.encode(&made.bytes())}),
        json!({"url": site.url("/by-type")}),
        json!({"url": site.url("/by-name.torrent")}),
    ];
    for request in requests {
        let home = Home::new();
        let service = serve(&home);
        let before = tracker.announces().len();
        let id = service.create(&request);
        wait_until_complete(&service, &id);
        shared.check(&home.downloads().join("one.bin"));
        assert_eq!(below(&home.downloads()), ["one.bin"], "{request}");
        wait_until("the tracker knows that it is complete", || {
            let told = tracker.announces();
            let told = &told[before..];
            told.iter()
                .any(|one| one.hash == shared.made.hash && one.event == "completed")
        });
        assert_eq!(
            tracker.announces()[before].left,
            shared.content.len(),
            "{:?}",
            tracker.announces()
        );
    }
    // It stays a file if the user wants that.
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": site.url("/by-name.torrent"), "followTorrent": false}));
    wait_until_complete(&service, &id);
    let kept = Content::bytes(made.bytes());
    assert_eq!(
        kept.difference(&home.downloads().join("by-name.torrent")).unwrap(),
        None
    );
}

#[test]
fn a_torrent_that_is_paused_goes_on_without_a_byte_twice() {
    let mut shared = Shared::one_file(3, 8 * MIB);
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(2 << 20);
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    wait_until("some of it is there", || {
        service.task(&id)["downloadedBytes"].as_u64() > Some(2 * MIB)
    });
    service.call("PUT", &format!("/api/v1/tasks/{id}/pause"), None);
    wait_until("it is paused", || service.task(&id)["status"] == PAUSED);
    assert_eq!(
        below(&home.downloads())
            .iter()
            .filter(|name| *name == "one.bin")
            .count(),
        0
    );
    shared.libtorrent.wait_until("it has left", |state| state["peers"] == 0);
    let sent = shared.libtorrent.uploaded();
    shared.libtorrent.limit_upload(0);
    service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    let twice = shared.libtorrent.uploaded() - shared.content.len();
    assert!(twice <= 2 * MIB, "{twice} bytes twice, {sent} before the pause");
}

#[test]
fn metadata_that_does_not_come_is_named_as_what_was_waited_for() {
    let shared = Shared::one_file(4, MIB);
    let nobody = Tracker::with_peers(&[]);
    let home = Home::new();
    let service = serve(&home);
    let url = shared.made.magnet(&format!("&tr={}", nobody.url()));
    let id = service.create(&json!({"url": url, "torrent": {"metadataTimeoutSecs": 2}}));
    let message = wait_until_failed(&service, &id);
    assert!(message.contains("metadata"), "{message}");
    assert_eq!(below(&home.downloads()), Vec::<String>::new());
}

#[test]
fn a_download_without_peers_ends_when_nothing_came_for_so_long() {
    let shared = Shared::one_file(5, MIB);
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": "", "torrentB64": shared.base64(), "torrent": {"stallTimeoutSecs": 2}}));
    let message = wait_until_failed(&service, &id);
    assert!(message.contains("2 s"), "{message}");
    let finished = below(&home.downloads());
    assert!(!finished.contains(&"one.bin".to_owned()), "{finished:?}");
}

#[test]
fn a_torrent_is_added_without_being_started() {
    let mut shared = Shared::one_file(6, MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let service = serve(&home);
    let url = shared.made.magnet(&peers(&[seeder]));
    let id = service.create(&json!({"url": url, "startPaused": true}));
    assert_eq!(service.task(&id)["status"], PAUSED);
    aria2(&service, "unpause", &[json!(gid(&id))]);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    assert_eq!(service.task(&id)["status"], COMPLETED);
}
