//! What stops a torrent and what it keeps to: full disks, the private flag, floods of requests, slow readers.

use std::{path::Path, process::Command, time::Duration};

use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, net::TcpListener, time::timeout};
use torrent::{Content, Status, TorrentSpec};
use transfer::FailureKind;

use crate::{
    content::{Files, address, connect, seed, session, spec, until, until_view},
    wire::{Peer, message, numbers},
};

const PIECE: usize = 32 * 1024;

/// A small file system of its own. Needs the right to mount, and fails without it.
struct Disk(TempDir);

impl Disk {
    fn mount(size: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        assert!(
            run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"], root.path()),
            "this test mounts a small file system, so it must be run as root"
        );
        Self(root)
    }

    fn resize(&self, size: &str) {
        assert!(run("mount", &["-o", &format!("remount,size={size}")], self.0.path()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let is_unmounted = run("umount", &["--lazy"], self.0.path());
        assert!(is_unmounted || std::thread::panicking(), "umount failed");
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let ran = Command::new(program).args(arguments).arg(path).status();
    ran.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_the_torrent_and_it_continues_when_there_is_room() {
    let files = Files::several(&[("a", 1_500_000), ("b", 2_500_000)], PIECE);
    let (seeding, seeder) = seed(&files).await;
    let disk = Disk::mount("2m");
    // Records are elsewhere, as with a download directory on another disk.
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), disk.0.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| matches!(status, Status::Failed(_))).await;
    let Status::Failed(failure) = torrent.view().status.clone() else {
        unreachable!("it was just seen")
    };
    assert_eq!(failure.kind, FailureKind::DiskFull, "{failure}");
    assert_eq!((torrent.view().banned, torrent.view().peers), (0, 0));
    let there = torrent.view().pieces_have;
    assert!(there > 20, "what fits is kept: {there} pieces");
    until_view(&seeder, |view| view.peers == 0).await;
    let sent = seeder.view().uploaded;
    disk.resize("16m");
    torrent.resume().await.unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(disk.0.path(), |_| true);
    until_view(&seeder, |view| view.peers == 0).await;
    let again = seeder.view().uploaded - sent;
    let missing = u64::from(files.info.piece_count() - there) * PIECE as u64;
    assert!(again <= missing, "{again} bytes for {missing} that were missing");
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_torrent_offers_no_exchange_and_takes_no_addresses_from_peers() {
    for (keys, is_offered) in [("7:privatei1e", false), ("", true)] {
        let files = Files::with(&[("a", 100_000), ("b", 50_000)], PIECE, keys);
        let target = tempfile::tempdir().unwrap();
        let session = session(target.path()).await;
        let torrent = session
            .add(spec(Content::Info(files.info.clone()), target.path()))
            .unwrap();
        until(&torrent, |status| *status == Status::Downloading).await;
        let mut peer = Peer::connect(address(&session), &files.info, 7).await;
        let ours = peer.wait_for(20).await;
        let has = |word: &[u8]| ours.windows(word.len()).any(|window| window == word);
        assert!(has(b"ut_metadata"));
        assert_eq!(has(b"ut_pex"), is_offered);
        let hidden = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut told = b"\x02d5:added6:\x7f\0\0\x01".to_vec();
        told.extend(hidden.local_addr().unwrap().port().to_be_bytes());
        told.extend(b"e");
        peer.send(20, &told).await;
        let is_called = timeout(Duration::from_secs(2), hidden.accept()).await.is_ok();
        assert_eq!(is_called, is_offered, "whether the address is used");
        session.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchange_is_switched_while_the_session_runs() {
    let files = Files::single("one.bin", 100_000, PIECE);
    let (seeding, _seeder) = seed(&files).await;
    for is_on in [false, true] {
        seeding.set_exchange(is_on);
        let mut peer = Peer::connect(address(&seeding), &files.info, 8 + u8::from(is_on)).await;
        let ours = peer.wait_for(20).await;
        let is_offered = ours.windows(6).any(|window| window == b"ut_pex");
        assert_eq!(is_offered, is_on);
    }
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_floods_with_requests_and_reads_nothing_is_cut_off_and_others_are_served() {
    let files = Files::single("one.bin", 10 * PIECE, PIECE);
    let (seeding, seeder) = seed(&files).await;
    let request = message(6, &numbers(&[0, 0, 16 * 1024]));
    // While it is choked every request is refused, which it does not read.
    let mut choked = Peer::connect(address(&seeding), &files.info, 1).await;
    let mut sent = 0;
    let flood = request.repeat(1000);
    let flooding = async {
        while choked.0.write_all(&flood).await.is_ok() {
            sent += flood.len();
        }
    };
    timeout(Duration::from_secs(30), flooding).await.expect("it is cut off");
    assert!(sent < 64 << 20, "{sent} bytes of requests were read");
    // While it is served, it may have so many open and no more.
    let mut served = Peer::connect(address(&seeding), &files.info, 2).await;
    served.send(2, &[]).await;
    served.wait_for(1).await;
    let different: Vec<u8> = (0..2000_u32)
        .flat_map(|number| message(6, &numbers(&[number % 10, number / 10 * 16, 16])))
        .collect();
    let _cut_off = served.0.write_all(&different).await;
    let flooding = async { while served.0.write_all(&different).await.is_ok() {} };
    timeout(Duration::from_secs(30), flooding).await.expect("it is cut off");
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert_eq!(seeder.view().banned, 0);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_slowly_holds_up_nobody() {
    let files = Files::single("one.bin", 3_000_000, 64 * 1024);
    let home = tempfile::tempdir().unwrap();
    let seeding = session(home.path()).await;
    let seeder = seeding
        .add(TorrentSpec {
            is_seed_only: true,
            upload_slots: 3,
            ..spec(Content::Info(files.info.clone()), files.directory.path())
        })
        .unwrap();
    until(&seeder, |status| *status == Status::Seeding).await;
    let mut slow = Vec::new();
    for id in 1..=2 {
        let mut peer = Peer::connect(address(&seeding), &files.info, id).await;
        peer.send(2, &[]).await;
        peer.wait_for(1).await;
        for block in 0..16 {
            let asked = numbers(&[block / 4, block % 4 * 16 * 1024, 16 * 1024]);
            peer.send(6, &asked).await;
        }
        slow.push(peer);
    }
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    let arriving = until(&torrent, |status| *status == Status::Seeding);
    timeout(Duration::from_secs(15), arriving)
        .await
        .expect("it is served beside them");
    assert_eq!(slow.len(), 2);
    session.shutdown().await;
    seeding.shutdown().await;
}
