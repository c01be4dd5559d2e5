//! libtorrent, transmission and aria2 on the other side.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use metainfo::{Info, Metainfo};
use serde_json::json;
use support::swarm::{Aria2c, HostilePeer, Libtorrent, Made, MakeTorrent, Manner, Tracker, Transmission};
use tempfile::TempDir;
use torrent::{Content, PeerReach, PeerSource, Priority, Session, Status, TorrentSpec, inspect};

use crate::content::{address, bytes, connect, list, session, spec, until, until_view};

/// Makes a torrent of what is at `path`.
fn make(maker: &mut Libtorrent, path: &Path, piece: u64, is_private: bool) -> (Made, Info) {
    let how = MakeTorrent {
        piece,
        is_private,
        ..MakeTorrent::default()
    };
    let made = maker.make(path, &how);
    let info = Metainfo::parse(&made.bytes()).unwrap().info;
    (made, info)
}

fn is_same(one: &Path, other: &Path) -> bool {
    std::fs::read(one).unwrap() == std::fs::read(other).unwrap()
}

/// A directory with one file of so many bytes.
fn one_file(length: usize) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.bin");
    std::fs::write(&path, bytes(3, length)).unwrap();
    (directory, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libtorrent_seeds_to_us_and_downloads_from_us() {
    let mut other = Libtorrent::start();
    let (source, path) = one_file(20_000_003);
    let (made, info) = make(&mut other, &path, 256 * 1024, false);
    let seeder = other.seed(&made.path, source.path(), &[]);
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(spec(Content::Info(info.clone()), target.path())).unwrap();
    connect(&torrent, seeder).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert!(std::fs::read(target.path().join("one.bin")).unwrap() == std::fs::read(&path).unwrap());
    let sent = other.uploaded();
    assert_eq!(sent, info.total_length(), "nothing is downloaded twice");
    // Now the other way, by magnet link.
    let mut leecher = Libtorrent::start();
    let copy = tempfile::tempdir().unwrap();
    let magnet = format!("magnet:?xt=urn:btih:{}", info.hash());
    let peers = json!([["127.0.0.1", session.port().unwrap()]]);
    leecher.ask(&json!({"do": "add", "magnet": magnet, "directory": copy.path(), "peers": peers}));
    leecher.wait_until_seeding();
    assert!(std::fs::read(copy.path().join("one.bin")).unwrap() == std::fs::read(&path).unwrap());
    session.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torrent_of_2000_files_arrives_from_libtorrent_as_selected() {
    let mut other = Libtorrent::start();
    let source = tempfile::tempdir().unwrap();
    let top = source.path().join("many");
    for file in 0..2000 {
        let directory = top.join(format!("d{}", file % 37));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(
            directory.join(format!("f{file}")),
            bytes(file, 1000 + usize::try_from(file).unwrap()),
        )
        .unwrap();
    }
    let (made, info) = make(&mut other, &top, 32 * 1024, false);
    let seeder = other.seed(&made.path, source.path(), &[]);
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let priorities = (0..2000).map(|file| {
        if file % 10 == 3 {
            Priority::Normal
        } else {
            Priority::Skip
        }
    });
    let torrent = session
        .add(TorrentSpec {
            priorities: priorities.collect(),
            ..spec(Content::Hash(info.hash()), target.path())
        })
        .unwrap();
    connect(&torrent, seeder).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    let chosen: Vec<_> = info
        .files()
        .iter()
        .skip(3)
        .step_by(10)
        .map(|file| format!("many/{}", file.shown()))
        .collect();
    let mut sorted = chosen.clone();
    sorted.sort();
    assert_eq!(list(target.path()), sorted);
    torrent.select(Vec::new()).await.unwrap();
    connect(&torrent, seeder).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    for file in info.files() {
        let path = Path::new("many").join(file.shown());
        let (here, there) = (target.path().join(&path), source.path().join(&path));
        assert!(
            std::fs::read(here).unwrap() == std::fs::read(there).unwrap(),
            "{}",
            path.display()
        );
    }
    session.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_from_libtorrent_continues_after_a_restart_without_a_byte_twice() {
    let mut other = Libtorrent::start();
    let (source, path) = one_file(16 << 20);
    let (made, info) = make(&mut other, &path, 64 * 1024, false);
    let seeder = other.seed(&made.path, source.path(), &[]);
    other.limit_upload(4_000_000);
    let target = tempfile::tempdir().unwrap();
    let first = session(target.path()).await;
    let torrent = first.add(spec(Content::Info(info.clone()), target.path())).unwrap();
    connect(&torrent, seeder).await;
    until_view(&torrent, |view| view.pieces_have >= 60).await;
    first.shutdown().await;
    other.limit_upload(0);
    let second = session(target.path()).await;
    let torrent = second.add(spec(Content::Info(info.clone()), target.path())).unwrap();
    connect(&torrent, seeder).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert!(std::fs::read(target.path().join("one.bin")).unwrap() == std::fs::read(&path).unwrap());
    let again = other.uploaded() - info.total_length();
    // Blocks of pieces that were not complete.
    assert!(again <= 8 << 20, "{again} bytes were sent twice");
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_libtorrents_are_used_at_once() {
    let mut maker = Libtorrent::start();
    let (source, path) = one_file(30_000_000);
    let (made, info) = make(&mut maker, &path, 256 * 1024, true);
    let mut others: Vec<_> = (0..3).map(|_| Libtorrent::start()).collect();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(spec(Content::Info(info.clone()), target.path())).unwrap();
    for other in &mut others {
        let seeder = other.seed(&made.path, source.path(), &[]);
        // One alone would take longer than the others take to start.
        other.limit_upload(3_000_000);
        connect(&torrent, seeder).await;
    }
    until(&torrent, |status| *status == Status::Seeding).await;
    assert!(std::fs::read(target.path().join("one.bin")).unwrap() == std::fs::read(&path).unwrap());
    let sent: Vec<_> = others.iter_mut().map(|other| other.uploaded()).collect();
    assert!(sent.iter().all(|sent| *sent > 0), "{sent:?}");
    session.shutdown().await;
}

/// A session that seeds what is in a directory.
async fn seed(info: &Info, directory: &Path) -> (Session, torrent::Torrent) {
    let session = session(directory).await;
    let torrent = session
        .add(TorrentSpec {
            is_seed_only: true,
            ..spec(Content::Info(info.clone()), directory)
        })
        .unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    (session, torrent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aria2c_downloads_from_us_and_seeds_to_us() {
    let mut maker = Libtorrent::start();
    let (source, path) = one_file(5_000_000);
    let (made, info) = make(&mut maker, &path, 64 * 1024, false);
    let (seeding, _torrent) = seed(&info, source.path()).await;
    let tracker = Tracker::with_peers(&[address(&seeding)]);
    let target = tempfile::tempdir().unwrap();
    Aria2c::leech(&made.path, target.path(), &tracker.url()).wait();
    assert!(is_same(&target.path().join("one.bin"), &path));
    seeding.shutdown().await;
    let nobody = Tracker::with_peers(&[]);
    let seeder = Aria2c::seed(&made.path, source.path(), &nobody.url());
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(spec(Content::Info(info), target.path())).unwrap();
    download_from(&torrent, seeder.peer()).await;
    assert!(is_same(&target.path().join("one.bin"), &path));
    session.shutdown().await;
}

/// Connects until the peer has begun to listen, and waits for the end of the download.
async fn download_from(torrent: &torrent::Torrent, peer: SocketAddr) {
    let connecting = async {
        loop {
            connect(torrent, peer).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        () = connecting => {}
        () = until(torrent, |status| *status == Status::Seeding) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transmission_seeds_to_us_and_downloads_from_us() {
    let mut maker = Libtorrent::start();
    let (source, path) = one_file(9_000_001);
    let (made, info) = make(&mut maker, &path, 128 * 1024, false);
    let mut seeder = Transmission::start();
    seeder.add(&made.bytes(), source.path());
    seeder.wait_until_seeding();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(spec(Content::Hash(info.hash()), target.path())).unwrap();
    download_from(&torrent, seeder.peer()).await;
    assert!(is_same(&target.path().join("one.bin"), &path));
    drop(seeder);
    // We connect to those who want something, too: it connects to nobody on this machine.
    let mut leecher = Transmission::start();
    let copy = tempfile::tempdir().unwrap();
    leecher.add(&made.bytes(), copy.path());
    let reach = PeerReach::AlsoThisMachine;
    let peers = vec![leecher.peer()];
    torrent.add_peers(peers, PeerSource::Tracker, reach).await.unwrap();
    leecher.wait_until_complete();
    assert!(is_same(&copy.path().join("one.bin"), &path));
    session.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_of_every_bad_manner_do_not_keep_an_honest_one_from_being_used() {
    const PIECE: u64 = 64 * 1024;
    let content = support::Content::seeded(5, 3_000_000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.bin");
    std::fs::write(&path, content.to_vec()).unwrap();
    let mut other = Libtorrent::start();
    let (made, info) = make(&mut other, &path, PIECE, false);
    let manners = [
        Manner::Wrong,
        Manner::Floods,
        Manner::Slow(Duration::from_millis(700)),
        Manner::Silent,
    ];
    let bad: Vec<_> = manners
        .into_iter()
        .map(|manner| HostilePeer::start(&made.hash, &content, PIECE, manner))
        .collect();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session.add(spec(Content::Info(info), target.path())).unwrap();
    for peer in &bad {
        connect(&torrent, peer.address()).await;
    }
    until_view(&torrent, |view| view.banned == 1).await;
    assert_ne!(torrent.view().status, Status::Seeding);
    connect(&torrent, other.seed(&made.path, directory.path(), &[])).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    assert!(is_same(&target.path().join("one.bin"), &path));
    // A flood is cut off after what we count as unasked.
    assert!(bad[1].sent() < 64 << 20, "{} bytes", bad[1].sent());
    session.shutdown().await;
}

/// The example, downloading in a process of its own.
struct Process(Child);

impl Process {
    fn start(torrent: &Path, directory: &Path, peer: SocketAddr) -> Self {
        let child = Command::new(built_example())
            .args([torrent, directory])
            .arg(peer.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }
}

/// Builds the example, which the tests' own build leaves out, and returns where it is.
fn built_example() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(Path::parent).unwrap();
    let name = profile.file_name().unwrap().to_str().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    // Other crates are compiled again whenever one of these changes.
    let of_package =
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
    for (name, _) in of_package {
        cargo.env_remove(name);
    }
    cargo
        .args([
            "build",
            "--quiet",
            "--locked",
            "-p",
            "torrent",
            "--example",
            "swarm",
            "--profile",
        ])
        .arg(if name == "debug" { "dev" } else { name })
        .arg("--target-dir")
        .arg(profile.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().unwrap().success(), "the example does not build");
    profile.join("examples/swarm")
}

impl Drop for Process {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_kills_no_piece_is_sent_again_that_was_recorded() {
    const PIECE: u64 = 64 * 1024;
    let mut other = Libtorrent::start();
    let (source, path) = one_file(24_000_000);
    let (made, info) = make(&mut other, &path, PIECE, false);
    let seeder = other.seed(&made.path, source.path(), &[]);
    other.limit_upload(5_000_000);
    let target = tempfile::tempdir().unwrap();
    let state = target.path().join(".state");
    let recorded = || inspect(&info, target.path(), info.name(), &[], &state).files[0].done_bytes;
    for kill in 1..=3 {
        let process = Process::start(&made.path, target.path(), seeder);
        while recorded() < kill * 5_000_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(process);
    }
    let there = recorded();
    let before = other.uploaded();
    other.limit_upload(0);
    let mut process = Process::start(&made.path, target.path(), seeder);
    let mut said = String::new();
    let mut output = BufReader::new(process.0.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    assert!(process.0.wait().unwrap().success());
    assert!(is_same(&target.path().join("one.bin"), &path));
    assert_eq!(other.uploaded() - before, info.total_length() - there, "{said}");
}
