//! Torrents to download, and sessions that do it.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use metainfo::Info;
use sha1::{Digest as _, Sha1};
use tempfile::TempDir;
use tokio::time::timeout;
use torrent::{
    Connections, Content, EventKind, PeerReach, PeerSource, Session, SessionConfig, Status, Torrent, TorrentSpec,
};
use transfer::{Lanes, RateLimiter, RateLimits};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Files with reproducible bytes, and their torrent.
pub(crate) struct Files {
    pub(crate) directory: TempDir,
    pub(crate) info: Info,
    pub(crate) each: Vec<(String, Vec<u8>)>,
}

/// Bytes that differ from file to file.
pub(crate) fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

impl Files {
    /// A torrent `name` of one file.
    pub(crate) fn single(name: &str, length: usize, piece: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let content = bytes(1, length);
        std::fs::write(directory.path().join(name), &content).unwrap();
        let head = format!("d6:lengthi{length}e4:name{}:{name}", name.len());
        let info = info(&head, &content, piece, "");
        Self {
            directory,
            info,
            each: vec![(name.to_owned(), content)],
        }
    }

    /// A torrent `top` of these files.
    pub(crate) fn several(files: &[(&str, usize)], piece: usize) -> Self {
        Self::with(files, piece, "")
    }

    /// The same, with further keys of the info dictionary that sort last.
    pub(crate) fn with(files: &[(&str, usize)], piece: usize, keys: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut head = "d5:filesl".to_owned();
        let (mut all, mut made) = (Vec::new(), Vec::new());
        for (index, (path, length)) in files.iter().enumerate() {
            let content = bytes(index as u64 + 1, *length);
            let at = directory.path().join("top").join(path);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(&at, &content).unwrap();
            let names: Vec<_> = path.split('/').map(|name| format!("{}:{name}", name.len())).collect();
            let names = names.concat();
            write!(head, "d6:lengthi{length}e4:pathl{names}ee").unwrap();
            all.extend_from_slice(&content);
            made.push((format!("top/{path}"), content));
        }
        head.push_str("e4:name3:top");
        let info = info(&head, &all, piece, keys);
        Self {
            directory,
            info,
            each: made,
        }
    }

    /// All bytes, as pieces divide them.
    pub(crate) fn all(&self) -> Vec<u8> {
        self.each.iter().flat_map(|(_, bytes)| bytes).copied().collect()
    }

    /// Checks that `directory` has exactly these files of the torrent, with their bytes.
    pub(crate) fn check(&self, directory: &Path, expected: impl Fn(&str) -> bool) {
        let mut wanted: Vec<_> = self
            .each
            .iter()
            .map(|(path, _)| path.clone())
            .filter(|path| expected(path))
            .collect();
        wanted.sort();
        assert_eq!(list(directory), wanted);
        for (path, bytes) in self.each.iter().filter(|(path, _)| expected(path)) {
            assert!(
                std::fs::read(directory.join(path)).unwrap() == *bytes,
                "{path} has other bytes"
            );
        }
    }
}

fn info(head: &str, content: &[u8], piece: usize, keys: &str) -> Info {
    let hashes: Vec<u8> = content
        .chunks(piece)
        .flat_map(|piece| Sha1::digest(piece).to_vec())
        .collect();
    let mut raw = format!("{head}12:piece lengthi{piece}e6:pieces{}:", hashes.len()).into_bytes();
    raw.extend(hashes);
    raw.extend(keys.as_bytes());
    raw.push(b'e');
    Info::parse(&raw).unwrap()
}

/// The files below a directory, without the records of sessions.
pub(crate) fn list(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().unwrap() != ".state" {
                    pending.push(path);
                }
            } else {
                found.push(path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// A session that accepts peers on this machine, with its records in `directory`.
pub(crate) async fn session(directory: &Path) -> Session {
    session_with(directory, |_| {}).await
}

pub(crate) async fn session_with(directory: &Path, change: impl FnOnce(&mut SessionConfig)) -> Session {
    let mut config = SessionConfig {
        ports: 0..=0,
        addresses: vec![IpAddr::from([127, 0, 0, 1])],
        state_directory: directory.join(".state"),
        lanes: Lanes::default(),
        connections: Connections::default(),
        is_exchange_on: true,
        encryption: torrent::Encryption::default(),
        names: egress::Names::default(),
        filter: None,
        webseeds: None,
    };
    change(&mut config);
    Session::start(config).unwrap()
}

pub(crate) fn spec(content: Content, directory: &Path) -> TorrentSpec {
    TorrentSpec {
        reach: PeerReach::AlsoThisMachine,
        ..TorrentSpec::new(content, PathBuf::from(directory))
    }
}

/// A session that seeds the files.
pub(crate) async fn seed(files: &Files) -> (Session, Torrent) {
    let session = session(files.directory.path()).await;
    let torrent = session
        .add(TorrentSpec {
            uses_existing: true,
            ..spec(Content::Info(files.info.clone()), files.directory.path())
        })
        .unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    (session, torrent)
}

/// Limits what a torrent downloads and uploads, in bytes per second; 0 is no limit.
pub(crate) async fn limit(torrent: &Torrent, download: u64, upload: u64) {
    let limits = |rate| RateLimits::new([RateLimiter::new(rate)]);
    torrent.set_limits(limits(download), limits(upload)).await.unwrap();
}

pub(crate) fn address(session: &Session) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], session.port().unwrap()))
}

/// Tells a torrent about a peer, as the user would.
pub(crate) async fn connect(torrent: &Torrent, peer: SocketAddr) {
    let reach = PeerReach::AlsoThisMachine;
    torrent.add_peers(vec![peer], PeerSource::User, reach).await.unwrap();
}

/// Waits until the status is as wanted. A failure that is not wanted is a panic.
pub(crate) async fn until(torrent: &Torrent, wanted: impl Fn(&Status) -> bool) {
    let mut views = torrent.watch();
    let waiting = views.wait_for(|view| {
        let is_wanted = wanted(&view.status);
        if let (Status::Failed(failure), false) = (&view.status, is_wanted) {
            panic!("{failure}");
        }
        is_wanted
    });
    let found = timeout(PATIENCE, waiting).await;
    assert!(found.is_ok(), "still {:?}", torrent.view());
}

/// Waits until the view is as wanted.
pub(crate) async fn until_view(torrent: &Torrent, wanted: impl FnMut(&torrent::TorrentView) -> bool) {
    let mut wanted = wanted;
    let mut views = torrent.watch();
    let found = timeout(PATIENCE, views.wait_for(|view| wanted(view))).await;
    assert!(found.is_ok(), "still {:?}", torrent.view());
}

pub(crate) fn is_event(kind: &EventKind, events: &mut tokio::sync::broadcast::Receiver<torrent::Event>) -> bool {
    std::iter::from_fn(|| events.try_recv().ok()).any(|event| event.kind == *kind)
}
