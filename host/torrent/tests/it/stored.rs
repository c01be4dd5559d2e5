//! What a torrent owns on the disk: names, records, and what is deleted or uploaded without downloading.

use std::path::{Path, PathBuf};

use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use torrent::{Content, Priority, Status, TorrentSpec, inspect, leftovers};
use transfer::{FailureKind, FileName};

use crate::{
    content::{Files, address, connect, limit, list, seed, session, spec, until, until_view},
    wire::{Peer, handshake},
};

fn two() -> Files {
    Files::several(&[("a", 200_000), ("empty", 0), ("dir/b", 300_000)], 32 * 1024)
}

/// A torrent whose name the embedder chose.
fn named(files: &Files, directory: &Path, name: &str) -> TorrentSpec {
    TorrentSpec {
        name: Some(FileName::sanitise(name)),
        ..spec(Content::Info(files.info.clone()), directory)
    }
}

async fn failure(torrent: &torrent::Torrent) -> transfer::Failure {
    until(torrent, |status| matches!(status, Status::Failed(_))).await;
    match torrent.view().status.clone() {
        Status::Failed(failure) => failure,
        status => unreachable!("it was just seen to fail, and is {status:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chosen_name_is_never_numbered_and_continues_what_is_its_own() {
    let files = two();
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 200_000).await;
    let target = tempfile::tempdir().unwrap();
    std::fs::create_dir(target.path().join("taken")).unwrap();
    let first = session(target.path()).await;
    let torrent = first.add(named(&files, target.path(), "taken")).unwrap();
    assert_eq!(failure(&torrent).await.kind, FailureKind::Exists);
    torrent.close().await.unwrap();
    let torrent = first.add(named(&files, target.path(), "own")).unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 3).await;
    torrent.close().await.unwrap();
    assert!(first.get(files.info.hash()).is_none());
    let there = torrent.view().pieces_have;
    // The name of this torrent in this directory, but of no other.
    limit(&seeder, 0, 0).await;
    let other = tempfile::tempdir().unwrap();
    std::fs::create_dir(other.path().join("own")).unwrap();
    let torrent = first.add(named(&files, other.path(), "own")).unwrap();
    assert_eq!(failure(&torrent).await.kind, FailureKind::Exists);
    torrent.close().await.unwrap();
    let torrent = first.add(named(&files, target.path(), "own")).unwrap();
    assert!(torrent.view().pieces_have == 0 || torrent.view().pieces_have >= there);
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(torrent.view().path, Some(target.path().join("own")));
    assert!(torrent.view().downloaded <= u64::from(files.info.piece_count() - there) * 32 * 1024);
    assert_eq!(list(target.path()), ["own/a", "own/dir/b", "own/empty"]);
    first.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_renamed_as_a_whole_while_it_did_not_run_is_believed() {
    let files = two();
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 200_000).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(named(&files, target.path(), "before")).unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 3).await;
    torrent.close().await.unwrap();
    let there = torrent.view().pieces_have;
    std::fs::rename(target.path().join("before"), target.path().join("after")).unwrap();
    let torrent = session.add(named(&files, target.path(), "after")).unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    assert_eq!((torrent.view().pieces_have, torrent.view().checked_pieces), (there, 0));
    torrent.close().await.unwrap();
    // Other files of that name are somebody else's.
    std::fs::create_dir(target.path().join("third")).unwrap();
    std::fs::write(target.path().join("third/a"), b"the user's").unwrap();
    let torrent = session.add(named(&files, target.path(), "third")).unwrap();
    assert_eq!(failure(&torrent).await.kind, FailureKind::Exists);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_proxy_no_connection_goes_past_it_and_none_is_accepted() {
    let files = two();
    let (seeding, _seeder) = seed(&files).await;
    let proxies = [
        ("socks5", support::Proxy::socks5(&[], None)),
        ("socks4", support::Proxy::socks4(&[])),
        ("http", support::Proxy::http(&[], None)),
    ];
    for (scheme, proxy) in proxies {
        let target = tempfile::tempdir().unwrap();
        let session = session(target.path()).await;
        let through = |url: String| TorrentSpec {
            proxy: Some(transfer::SafeUrl::parse(&url).unwrap()),
            ..spec(Content::Info(files.info.clone()), target.path())
        };
        let refused = session.add(through("https://127.0.0.1:1".to_owned()));
        assert!(matches!(refused, Err(torrent::AddError::Proxy { .. })), "{refused:?}");
        let torrent = session
            .add(through(format!("{scheme}://127.0.0.1:{}", proxy.port())))
            .unwrap();
        until(&torrent, |status| *status == Status::Downloading).await;
        // The seeder knows nothing of us, so whoever asks this port is not served.
        let mut stranger = Peer(TcpStream::connect(address(&session)).await.unwrap());
        stranger.0.write_all(&handshake(&files.info, 7)).await.unwrap();
        assert_eq!(stranger.next().await, None, "{scheme}: it is not served");
        connect(&torrent, address(&seeding)).await;
        until(&torrent, |status| *status == Status::Seeding).await;
        assert_eq!(proxy.requests().len(), 1, "{scheme}");
        session.shutdown().await;
    }
    // A proxy that is gone is no reason to go past it.
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(TorrentSpec {
            proxy: Some(transfer::SafeUrl::parse("socks5://127.0.0.1:9").unwrap()),
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(torrent.view().peers, 0);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_name_was_taken_meanwhile_fails_instead_of_getting_another_one() {
    let files = Files::single("one.bin", 300_000, 32 * 1024);
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(named(&files, target.path(), "mine.bin")).unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    std::fs::write(target.path().join("mine.bin"), b"the user's").unwrap();
    connect(&torrent, address(&seeding)).await;
    let failed = failure(&torrent).await;
    assert_eq!(failed.kind, FailureKind::Exists);
    assert!(failed.message.contains("mine.bin"), "{failed}");
    assert_eq!(std::fs::read(target.path().join("mine.bin")).unwrap(), b"the user's");
    std::fs::remove_file(target.path().join("mine.bin")).unwrap();
    torrent.resume().await.unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(list(target.path()), ["mine.bin"]);
    session.shutdown().await;
    seeding.shutdown().await;
}

fn left(files: &Files, target: &Path, name: &str, deletes_finished: bool) -> Vec<String> {
    let content = Content::Info(files.info.clone());
    let name = FileName::sanitise(name);
    let found = leftovers(&content, target, Some(&name), &target.join(".state"), deletes_finished);
    let below = format!("{}/", target.display());
    let shown = found.iter().map(|path| {
        let text = path.to_str().unwrap().strip_prefix(&below).unwrap();
        text.replace(&files.info.hash().to_string(), "HASH")
    });
    shown.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_with_a_torrent_is_known_without_a_session() {
    let files = two();
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 100_000).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    assert_eq!(left(&files, target.path(), "top", true), [] as [&str; 0]);
    let torrent = session
        .add(TorrentSpec {
            priorities: vec![Priority::Normal, Priority::Normal, Priority::Skip],
            order: torrent::Order {
                is_sequential: true,
                head_bytes: 1,
                tail_bytes: 1,
            },
            ..named(&files, target.path(), "top")
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 3).await;
    torrent.rename(0, "x/renamed".to_owned()).await.unwrap();
    torrent.rename_top(FileName::sanitise("other")).await.unwrap();
    torrent.close().await.unwrap();
    let own = [
        "other/x/renamed.svcpart",
        ".HASH.svcparts",
        ".state/HASH.resume",
        "other/x/",
        "other/",
    ];
    assert_eq!(left(&files, target.path(), "other", false), own);
    let with_finished = [&["other/x/renamed.svcpart", "other/empty"], &own[1..]].concat();
    assert_eq!(left(&files, target.path(), "other", true), with_finished);
    limit(&seeder, 0, 0).await;
    let torrent = session
        .add(TorrentSpec {
            priorities: vec![Priority::Normal, Priority::Normal, Priority::Skip],
            ..named(&files, target.path(), "other")
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    torrent.close().await.unwrap();
    let kept = [".state/HASH.resume", "other/x/", "other/"];
    assert_eq!(left(&files, target.path(), "other", false), kept);
    let all = [&["other/x/renamed", "other/empty"], &kept[..]].concat();
    assert_eq!(left(&files, target.path(), "other", true), all);
    // Links lead elsewhere.
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("renamed"), b"the user's").unwrap();
    std::fs::remove_dir_all(target.path().join("other/x")).unwrap();
    std::os::unix::fs::symlink(outside.path(), target.path().join("other/x")).unwrap();
    let rest = ["other/empty", ".state/HASH.resume", "other/"];
    assert_eq!(left(&files, target.path(), "other", true), rest);
    session.forget(files.info.hash()).await.unwrap();
    assert_eq!(left(&files, target.path(), "other", false), ["other/"]);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_there_is_shown_without_a_session() {
    let files = two();
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 100_000).await;
    let target = tempfile::tempdir().unwrap();
    let (name, state) = (FileName::sanitise("top"), target.path().join(".state"));
    let nothing = inspect(&files.info, target.path(), &name, &[], &state);
    assert_eq!((nothing.have, nothing.path), (vec![0; 2], target.path().join("top")));
    assert!(nothing.files.iter().all(|file| file.done_bytes == 0));
    let session = session(target.path()).await;
    let torrent = session.add(named(&files, target.path(), "top")).unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 3).await;
    torrent.pause().await.unwrap();
    let running = torrent.files().await.unwrap();
    let pieces = torrent.pieces().await.unwrap().unwrap();
    let found = inspect(&files.info, target.path(), &name, &[], &state);
    assert_eq!((found.files, found.have), (running, pieces.have));
    let elsewhere = inspect(&files.info, &target.path().join("x"), &name, &[], &state);
    assert_eq!(elsewhere.have, [0; 2]);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torrent_that_only_uploads_names_the_file_that_is_missing_or_changed_and_changes_none() {
    let files = two();
    let target = tempfile::tempdir().unwrap();
    for (path, bytes) in &files.each {
        let path = target.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let first = session(target.path()).await;
    let seed_only = |priorities: &[Priority]| TorrentSpec {
        is_seed_only: true,
        priorities: priorities.to_vec(),
        ..named(&files, target.path(), "top")
    };
    // Without a record everything is hashed; with it, nothing.
    let torrent = first.add(seed_only(&[])).unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    torrent.close().await.unwrap();
    let torrent = first.add(seed_only(&[])).unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(torrent.view().checked_pieces, 0);
    torrent.close().await.unwrap();
    // Changed, put back, shorter, missing.
    let path = target.path().join("top/dir/b");
    let mut changed = files.each[2].1.clone();
    changed[250_000] ^= 1;
    let short = changed[..1000].to_vec();
    for bytes in [Some(changed), Some(short), None] {
        std::fs::remove_file(&path).unwrap();
        if let Some(bytes) = &bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let torrent = first.add(seed_only(&[])).unwrap();
        let failed = failure(&torrent).await;
        assert_eq!(failed.kind, FailureKind::DiskIo);
        assert!(failed.message.contains("top/dir/b"), "{failed}");
        assert_eq!(std::fs::read(&path).ok(), bytes, "it is left as it is");
        std::fs::write(&path, &files.each[2].1).unwrap();
        torrent.resume().await.unwrap();
        until(&torrent, |status| *status == Status::Seeding).await;
        torrent.close().await.unwrap();
    }
    // A file that is not wanted may be missing, and what shares pieces with it.
    std::fs::remove_file(&path).unwrap();
    let torrent = first
        .add(seed_only(&[Priority::Normal, Priority::Normal, Priority::Skip]))
        .unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(list(target.path()), ["top/a", "top/empty"]);
    first.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_hashed_again_whatever_the_record_says() {
    let files = two();
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(named(&files, target.path(), "top")).unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    torrent.close().await.unwrap();
    seeding.shutdown().await;
    // Damaged without a trace that the record could show: the same size and time of change.
    let path = target.path().join("top/dir/b");
    let changed_at = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut changed = files.each[2].1.clone();
    changed[250_000] ^= 1;
    std::fs::write(&path, changed).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(changed_at).unwrap();
    let torrent = session.add(named(&files, target.path(), "top")).unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    torrent.close().await.unwrap();
    let rechecked = TorrentSpec {
        is_rechecked: true,
        ..named(&files, target.path(), "top")
    };
    let torrent = session.add(rechecked).unwrap();
    until_view(&torrent, |view| {
        view.status == Status::Downloading && view.done_bytes < view.wanted_bytes
    })
    .await;
    let view = torrent.view();
    assert_eq!(view.checked_pieces, files.info.piece_count());
    assert!(
        view.wanted_bytes - view.done_bytes <= u64::from(files.info.piece_length()),
        "{view:?}"
    );
    let (seeding, _seeder) = seed(&files).await;
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(std::fs::read(&path).unwrap(), files.each[2].1);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_vanishes_while_it_is_uploaded_is_named() {
    let files = two();
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 100_000).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(named(&files, target.path(), "top")).unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 1).await;
    for path in ["top/a", "top/dir/b"] {
        let file = std::fs::File::options()
            .write(true)
            .open(files.directory.path().join(path))
            .unwrap();
        file.set_len(0).unwrap();
    }
    let failed = failure(&seeder).await;
    assert_eq!(failed.kind, FailureKind::DiskIo);
    assert!(failed.message.contains("top/"), "{failed}");
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_uploaded_than_is_allowed() {
    let files = Files::single("one.bin", 3_000_000, 64 * 1024);
    let (seeding, seeder) = seed(&files).await;
    seeder.set_most_uploaded(Some(500_000)).await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&seeder, |view| view.uploaded >= 500_000).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    let uploaded = seeder.view().uploaded;
    assert!(uploaded <= 500_000 + 64 * 1024, "{uploaded} bytes");
    seeder.set_most_uploaded(None).await.unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_torrent_knows_its_peers_and_the_name_is_chosen_when_the_metadata_is_there() {
    let files = two();
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(TorrentSpec {
            stops_after_metadata: true,
            ..spec(Content::Hash(files.info.hash()), target.path())
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.info.is_some() && view.status == Status::Paused).await;
    torrent.rename_top(FileName::sanitise("chosen")).await.unwrap();
    let paths: Vec<PathBuf> = torrent
        .files()
        .await
        .unwrap()
        .into_iter()
        .map(|file| file.path)
        .collect();
    assert_eq!(paths[0], target.path().join("chosen/a"));
    torrent.resume().await.unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(torrent.view().path, Some(target.path().join("chosen")));
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fewer_connections_hold_from_now_on() {
    let files = two();
    let (seeding, seeder) = seed(&files).await;
    let none = torrent::Connections {
        total: 0,
        ..torrent::Connections::default()
    };
    seeding.set_connections(none);
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!((seeder.view().peers, torrent.view().pieces_have), (0, 0));
    seeding.set_connections(torrent::Connections::default());
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    session.shutdown().await;
    seeding.shutdown().await;
}
