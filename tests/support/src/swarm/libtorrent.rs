//! libtorrent, in Python.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use super::{Owned, client, wait_until};

/// A process with a session of libtorrent: a seeder, a leecher, or one that makes torrents.
#[derive(Debug)]
pub struct Libtorrent {
    _process: Owned,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What a torrent is made with.
#[derive(Debug, Clone, Copy)]
pub struct MakeTorrent<'a> {
    /// Bytes of a piece; 0: libtorrent chooses.
    pub piece: u64,
    /// Whether it is for its trackers only.
    pub is_private: bool,
    /// URLs of trackers, each a tier of its own.
    pub trackers: &'a [&'a str],
    /// URLs of web servers that have the files.
    pub webseeds: &'a [&'a str],
    /// `v1`, `v2` or `hybrid`.
    pub version: &'a str,
}

impl Default for MakeTorrent<'_> {
    fn default() -> Self {
        Self {
            piece: 0,
            is_private: false,
            trackers: &[],
            webseeds: &[],
            version: "v1",
        }
    }
}

/// A torrent that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// The metainfo file.
    pub path: PathBuf,
    /// The info hash in hexadecimal digits: of version 1, if it has that.
    pub hash: String,
}

impl Made {
    /// The bytes of the metainfo file.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("it was written")
    }

    /// Its magnet link, with these further parameters, each with `&` before it.
    pub fn magnet(&self, more: &str) -> String {
        format!("magnet:?xt=urn:btih:{}{more}", self.hash)
    }
}

impl Libtorrent {
    /// A session that speaks to peers and trackers, and to nothing else.
    pub fn start() -> Self {
        Self::with(&json!({}))
    }

    /// A session with these settings besides.
    pub fn with(settings: &Value) -> Self {
        let mut child = Command::new(client("python"))
            .arg(client("torrent_peer.py"))
            .arg(settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the launcher is a script of ours");
        Self {
            input: child.stdin.take().expect("it is piped"),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            _process: Owned(child),
        }
    }

    /// Sends a command and gives its answer; the script has the list of them.
    #[track_caller]
    pub fn ask(&mut self, command: &Value) -> Value {
        writeln!(self.input, "{command}").expect("libtorrent runs");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("its answers are UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{command}: {line:?}"))
    }

    /// Makes a torrent of what is at `path`, in a file beside it.
    #[track_caller]
    pub fn make(&mut self, path: &Path, how: &MakeTorrent<'_>) -> Made {
        let torrent = path.with_extension("torrent");
        let made = self.ask(&json!({
            "do": "make", "path": path, "torrent": torrent, "piece": how.piece, "private": how.is_private,
            "trackers": how.trackers, "webseeds": how.webseeds, "version": how.version,
        }));
        let hash = made["hash"].as_str().expect("a torrent has a hash").to_owned();
        Made { path: torrent, hash }
    }

    /// Seeds what is in `directory`. Returns once these trackers know it.
    #[track_caller]
    pub fn seed(&mut self, torrent: &Path, directory: &Path, trackers: &[&str]) -> SocketAddr {
        let added = self.ask(&json!({
            "do": "add", "torrent": torrent, "directory": directory, "seed": true, "trackers": trackers,
        }));
        address(&added["port"])
    }

    /// Downloads to `directory`. Returns once these trackers know it.
    #[track_caller]
    pub fn leech(&mut self, torrent: &Path, directory: &Path, trackers: &[&str]) -> SocketAddr {
        let added = self.ask(&json!({
            "do": "add", "torrent": torrent, "directory": directory, "trackers": trackers,
        }));
        address(&added["port"])
    }

    /// Connects to peers.
    #[track_caller]
    pub fn connect(&mut self, peers: &[SocketAddr]) {
        let peers: Vec<_> = peers.iter().map(|peer| (peer.ip(), peer.port())).collect();
        self.ask(&json!({"do": "connect", "peers": peers}));
    }

    /// Limits what it sends, in bytes per second; 0 is no limit.
    #[track_caller]
    pub fn limit_upload(&mut self, bytes_per_second: u64) {
        self.ask(&json!({"do": "limit", "upload": bytes_per_second}));
    }

    /// What it has done so far.
    #[track_caller]
    pub fn state(&mut self) -> Value {
        self.ask(&json!({"do": "state"}))
    }

    /// Bytes of the torrent that it has sent.
    #[track_caller]
    pub fn uploaded(&mut self) -> u64 {
        self.state()["uploaded"].as_u64().expect("it is a number")
    }

    /// Waits until it has everything.
    #[track_caller]
    pub fn wait_until_seeding(&mut self) {
        self.wait_until("libtorrent has everything", |state| state["seeding"] == true);
    }

    /// Waits until its [`state`](Self::state) is like this.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) {
        wait_until(what, || is_so(&self.state()));
    }
}

fn address(port: &Value) -> SocketAddr {
    let port = port.as_u64().and_then(|port| u16::try_from(port).ok());
    SocketAddr::from(([127, 0, 0, 1], port.expect("it listens")))
}
