//! From metadata to seeding, between two of our own sessions.

use std::time::{Duration, Instant};

use torrent::{Content, EventKind, Order, Priority, Status, TorrentSpec};
use transfer::{FailureKind, FileName};

use crate::content::{Files, address, connect, is_event, limit, list, seed, session, spec, until, until_view};

fn mixed() -> Files {
    Files::several(
        &[
            ("a", 100_000),
            ("empty", 0),
            ("dir/b", 300_001),
            ("dir/deep/c", 5),
            ("d", 70_000),
        ],
        32 * 1024,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torrent_of_several_files_arrives_whole() {
    let files = mixed();
    let (seeding, seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let mut events = session.events();
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    assert!(is_event(&EventKind::Completed, &mut events));
    assert_eq!(torrent.view().downloaded, files.info.total_length());
    until_view(&seeder, |view| view.uploaded == files.info.total_length()).await;
    let names: Vec<_> = torrent
        .files()
        .await
        .unwrap()
        .into_iter()
        .map(|file| (file.length, file.done_bytes))
        .collect();
    assert!(names.iter().all(|(length, done)| length == done), "{names:?}");
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_selected_files_are_left_and_more_can_be_selected_later() {
    let files = mixed();
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let mut priorities = vec![Priority::Skip; files.info.files().len()];
    priorities[3] = Priority::High;
    let torrent = session
        .add(TorrentSpec {
            priorities: priorities.clone(),
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |path| path == "top/dir/deep/c");
    assert!(torrent.view().downloaded < 100_000, "{:?}", torrent.view());
    priorities[2] = Priority::Low;
    torrent.select(priorities).await.unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |path| path.starts_with("top/dir/"));
    torrent.select(Vec::new()).await.unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_magnet_link_gets_its_metadata_from_a_peer() {
    let files = mixed();
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
    assert_eq!(list(target.path()), [] as [&str; 0]);
    let mut priorities = vec![Priority::Skip; 5];
    priorities[0] = Priority::Normal;
    torrent.select(priorities).await.unwrap();
    torrent.resume().await.unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |path| path == "top/a");
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_that_does_not_come_is_an_error_that_says_what_was_waited_for() {
    let files = mixed();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(TorrentSpec {
            metadata_timeout: Some(Duration::from_millis(100)),
            ..spec(Content::Hash(files.info.hash()), target.path())
        })
        .unwrap();
    until(&torrent, |status| matches!(status, Status::Failed(_))).await;
    let Status::Failed(failure) = torrent.view().status.clone() else {
        unreachable!("it was just seen")
    };
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.message.contains("0 peers are connected"), "{failure}");
    session.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_downloaded_is_not_downloaded_again_after_a_pause_or_a_restart() {
    let files = Files::single("one.bin", 4_000_000, 64 * 1024);
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 1_000_000).await;
    let target = tempfile::tempdir().unwrap();
    let first = session(target.path()).await;
    let torrent = first
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 10).await;
    torrent.pause().await.unwrap();
    assert_eq!(list(target.path()), ["one.bin.svcpart"]);
    let there = torrent.view().pieces_have;
    torrent.resume().await.unwrap();
    assert!(torrent.view().pieces_have >= there);
    until_view(&torrent, |view| view.pieces_have >= 20).await;
    first.shutdown().await;
    let there = torrent.view().pieces_have;
    limit(&seeder, 0, 0).await;
    let second = session(target.path()).await;
    let torrent = second
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    let missing = u64::from(files.info.piece_count() - there) * 64 * 1024;
    assert!(
        torrent.view().downloaded <= missing,
        "{} of {missing} bytes",
        torrent.view().downloaded
    );
    second.shutdown().await;
    // A finished torrent seeds at once after a restart, without hashing.
    let third = session(target.path()).await;
    let torrent = third
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(torrent.view().checked_pieces, 0);
    third.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changed_is_hashed_again_and_only_its_wrong_pieces_are_downloaded() {
    let files = Files::single("one.bin", 1_000_000, 64 * 1024);
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let first = session(target.path()).await;
    let torrent = first
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    first.shutdown().await;
    let mut damaged = files.all();
    damaged[200_000] ^= 1;
    std::fs::write(target.path().join("one.bin"), &damaged).unwrap();
    let second = session(target.path()).await;
    let torrent = second
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    assert_eq!(torrent.view().downloaded, 64 * 1024);
    // Damaged while it runs, and found by a check that the user asks for.
    std::fs::write(target.path().join("one.bin"), &damaged).unwrap();
    torrent.recheck().await.unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    assert_eq!(list(target.path()), ["one.bin.svcpart"], "it does not look finished");
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    second.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_the_disk_stops_the_torrent_and_it_continues_when_the_cause_is_gone() {
    let files = mixed();
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    // A file stands where the torrent needs a directory.
    until(&torrent, |status| *status == Status::Downloading).await;
    std::fs::create_dir_all(target.path().join("top")).unwrap();
    std::fs::write(target.path().join("top/dir"), b"in the way").unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| matches!(status, Status::Failed(_))).await;
    assert_eq!(torrent.view().banned, 0);
    std::fs::remove_file(target.path().join("top/dir")).unwrap();
    torrent.resume().await.unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_renamed_while_they_arrive_and_removed_with_the_torrent() {
    let files = mixed();
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 300_000).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 3).await;
    torrent.rename(2, "other/name".to_owned()).await.unwrap();
    torrent.rename_top(FileName::sanitise("renamed")).await.unwrap();
    limit(&seeder, 0, 0).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    let expected = [
        "renamed/a",
        "renamed/d",
        "renamed/dir/deep/c",
        "renamed/empty",
        "renamed/other/name",
    ];
    assert_eq!(list(target.path()), expected);
    assert!(std::fs::read(target.path().join("renamed/other/name")).unwrap() == files.each[2].1);
    torrent.remove(true).await.unwrap();
    assert_eq!(list(target.path()), [] as [&str; 0]);
    assert!(session.get(files.info.hash()).is_none() || session.torrents().len() <= 1);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_change_while_they_act() {
    let files = Files::single("one.bin", 3_000_000, 64 * 1024);
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    limit(&torrent, 500_000, 0).await;
    connect(&torrent, address(&seeding)).await;
    let begun = Instant::now();
    until_view(&torrent, |view| view.downloaded >= 1_000_000).await;
    assert!(begun.elapsed() > Duration::from_millis(1500), "{:?}", begun.elapsed());
    limit(&torrent, 0, 0).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_come_in_order_if_the_user_wants_that() {
    let files = Files::single("one.bin", 3_000_000, 32 * 1024);
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 1_000_000).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(TorrentSpec {
            order: Order {
                is_sequential: true,
                head_bytes: 1,
                tail_bytes: 1,
            },
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 20).await;
    let have = torrent.pieces().await.unwrap().unwrap().have;
    let has = |piece: usize| have[piece / 8] & (0x80 >> (piece % 8)) != 0;
    let last = files.info.piece_count() as usize - 1;
    assert!(has(0) && has(last));
    // Pieces complete nearly in order: requests of neighbours are open at the same time.
    let highest = (1..last).filter(|piece| has(*piece)).max().unwrap();
    let missing = (1..highest).filter(|piece| !has(*piece)).count();
    assert!(missing <= 4, "{missing} pieces before {highest} are missing");
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_bytes_at_the_ends_of_a_file_come_first() {
    let files = Files::single("one.bin", 3_000_000, 32 * 1024);
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 1_000_000).await;
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(TorrentSpec {
            order: Order {
                head_bytes: 500_000,
                tail_bytes: 300_000,
                ..Order::default()
            },
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 30).await;
    let have = torrent.pieces().await.unwrap().unwrap().have;
    let has = |piece: u64| have[usize::try_from(piece / 8).unwrap()] & (0x80 >> (piece % 8)) != 0;
    let piece = u64::from(files.info.piece_length());
    let [head, tail] = [0..=500_000 / piece, 2_700_000 / piece..=2_999_999 / piece];
    let missing: Vec<_> = head.chain(tail).filter(|piece| !has(*piece)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn existing_files_are_used_only_when_asked_and_a_taken_name_is_numbered() {
    let files = Files::single("one.bin", 300_000, 64 * 1024);
    let (seeding, _seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    std::fs::write(target.path().join("one.bin"), b"the user's").unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    assert!(
        session
            .add(spec(Content::Info(files.info.clone()), target.path()))
            .is_err(),
        "it is there already"
    );
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(list(target.path()), ["one (1).bin", "one.bin"]);
    assert_eq!(std::fs::read(target.path().join("one.bin")).unwrap(), b"the user's");
    session.shutdown().await;
    seeding.shutdown().await;
}

/// Copies a directory as a kill would leave it: with the times of its files.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&source, &target);
        } else {
            std::fs::copy(&source, &target).unwrap();
            let changed = entry.metadata().unwrap().modified().unwrap();
            std::fs::File::options()
                .append(true)
                .open(&target)
                .unwrap()
                .set_modified(changed)
                .unwrap();
        }
    }
}

/// Brings a directory back to how it was copied.
fn restore(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(to).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    copy(from, to);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_no_recorded_piece_is_downloaded_again_and_a_changed_file_is_hashed() {
    let files = Files::several(&[("a", 1_000_000), ("b", 3_000_000)], 64 * 1024);
    let (seeding, seeder) = seed(&files).await;
    limit(&seeder, 0, 1_500_000).await;
    let target = tempfile::tempdir().unwrap();
    let first = session(target.path()).await;
    let torrent = first
        .add(TorrentSpec {
            order: Order {
                is_sequential: true,
                ..Order::default()
            },
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until_view(&torrent, |view| view.pieces_have >= 25).await;
    // Nothing arrives any more, but nothing is synced or recorded as in an orderly stop.
    seeding.shutdown().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (killed, damaged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    copy(target.path(), killed.path());
    copy(target.path(), damaged.path());
    first.shutdown().await;
    let there = torrent.view().pieces_have;
    let (seeding, _seeder) = seed(&files).await;
    // As it was left.
    restore(killed.path(), target.path());
    let second = session(target.path()).await;
    let torrent = second
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    assert_eq!((torrent.view().pieces_have, torrent.view().checked_pieces), (there, 0));
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    assert!(torrent.view().downloaded <= u64::from(files.info.piece_count() - there) * 64 * 1024);
    second.shutdown().await;
    // With a file that another program changed meanwhile.
    restore(damaged.path(), target.path());
    let mut bytes = std::fs::read(target.path().join("top/a")).unwrap();
    bytes[70_000] ^= 1;
    std::fs::write(target.path().join("top/a"), bytes).unwrap();
    let third = session(target.path()).await;
    let torrent = third
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    assert_eq!(torrent.view().pieces_have, there - 1);
    assert!(torrent.view().checked_pieces > 0);
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    third.shutdown().await;
    seeding.shutdown().await;
}
