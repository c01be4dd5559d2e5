//! Torrents through the service, in swarms with programs that share no line with it: libtorrent, transmission, aria2c and
//! opentracker. What crossed the wire is counted by the other side.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod aria2;
mod arriving;
mod foreign;
mod hostile;
mod kept;
mod outside;
mod refused;
mod seeding;
mod selection;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use e2e::{
    Home, Service,
    service::{KEY, wait_until},
};
use serde_json::{Map, Value, json};
use support::{
    Content,
    swarm::{Libtorrent, Made, MakeTorrent, free_port},
};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// Bytes of a piece of the torrents here.
const PIECE: u64 = 64 * 1024;

/// States of tasks, by their numbers on the wire.
const PAUSED: u64 = 2;
const COMPLETED: u64 = 3;
const FAILED: u64 = 4;

/// What [`Value`]s of `seedingStatus` mean.
const SEEDS: u64 = 1;
const RATIO_REACHED: u64 = 2;

/// A torrent with its files and a libtorrent that can seed it.
struct Shared {
    content: Content,
    source: TempDir,
    made: Made,
    libtorrent: Libtorrent,
}

impl Shared {
    /// A torrent of one file `one.bin`.
    fn one_file(seed: u64, length: u64) -> Self {
        Self::made_so(seed, length, &MakeTorrent::default())
    }

    /// The same, made so.
    fn made_so(seed: u64, length: u64, how: &MakeTorrent<'_>) -> Self {
        let content = Content::seeded(seed, length);
        let source = tempfile::tempdir().unwrap();
        let path = source.path().join("one.bin");
        fs::write(&path, content.to_vec()).unwrap();
        let mut libtorrent = Libtorrent::start();
        let piece = if how.piece == 0 { PIECE } else { how.piece };
        let made = libtorrent.make(&path, &MakeTorrent { piece, ..*how });
        Self {
            content,
            source,
            made,
            libtorrent,
        }
    }

    /// Seeds it, and gives where. Returns once these trackers know it.
    fn seed(&mut self, trackers: &[&str]) -> SocketAddr {
        self.libtorrent.seed(&self.made.path, self.source.path(), trackers)
    }

    /// Seeds it in a further process.
    fn seed_more(&self, trackers: &[&str]) -> (Libtorrent, SocketAddr) {
        let mut libtorrent = Libtorrent::start();
        let address = libtorrent.seed(&self.made.path, self.source.path(), trackers);
        (libtorrent, address)
    }

    /// Its metainfo file in base64.
    fn base64(&self) -> String {
        BASE64.encode(&self.made.bytes())
    }

    /// The same metainfo file with these trackers.
    fn with_trackers(&self, trackers: &[&str]) -> Vec<u8> {
        let how = MakeTorrent {
            piece: PIECE,
            trackers,
            ..MakeTorrent::default()
        };
        // Beside the other one, which is for those that get their trackers otherwise.
        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join("one.bin");
        fs::copy(self.source.path().join("one.bin"), &path).unwrap();
        Libtorrent::start().make(&path, &how).bytes()
    }

    #[track_caller]
    fn check(&self, path: &Path) {
        assert_eq!(self.content.difference(path).unwrap(), None, "{}", path.display());
    }
}

/// A service of its own port, that finds peers through trackers and magnet links only.
fn serve(home: &Home) -> Service {
    let service = home.serve();
    service.wait_until_ready();
    let port = free_port().to_string();
    let values = [
        ("bt_enable_dht", "false"),
        ("bt_enable_lsd", "false"),
        ("bt_enable_upnp", "false"),
        ("bt_tracker_sub_enabled", "false"),
        ("bt_port_start", &port),
        ("bt_port_end", &port),
    ];
    set(&service, &values);
    service
}

/// Changes settings.
#[track_caller]
fn set(service: &Service, values: &[(&str, &str)]) {
    let mut rpc = service.rpc();
    let config = rpc.call("daemon.config.get", &json!({})).unwrap();
    let values: Map<_, _> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let patch = json!({"expectedRevision": config["revision"], "values": values});
    rpc.call("daemon.config.patch", &patch).unwrap();
}

/// Waits until a task has the bytes and gives it.
#[track_caller]
fn wait_until_complete(service: &Service, id: &str) -> Value {
    let mut task = Value::Null;
    wait_until("the task is complete", || {
        task = service.task(id);
        assert_ne!(task["status"], FAILED, "{task}");
        task["status"] == COMPLETED
    });
    task
}

/// Waits until a task has failed and gives its error.
#[track_caller]
fn wait_until_failed(service: &Service, id: &str) -> String {
    let mut task = Value::Null;
    wait_until("the task fails", || {
        task = service.task(id);
        assert_ne!(task["status"], COMPLETED, "{task}");
        task["status"] == FAILED
    });
    message(&task)
}

/// Why a task failed.
fn message(task: &Value) -> String {
    task["errorMessage"].as_str().unwrap_or_default().to_owned()
}

/// What a request that is refused is answered with.
#[track_caller]
fn refusal(service: &Service, task: &Value) -> String {
    let answer = service.ask("POST", "/api/v1/tasks", Some(task)).unwrap();
    assert!((400..500).contains(&answer.status), "{} {}", answer.status, answer.body);
    answer.body["message"].as_str().unwrap_or_default().to_owned()
}

/// Calls a method of aria2's dialect.
#[track_caller]
fn aria2(service: &Service, method: &str, params: &[Value]) -> Value {
    let mut all = vec![json!(format!("token:{KEY}"))];
    all.extend_from_slice(params);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": format!("aria2.{method}"), "params": all});
    let mut answer = service.call("POST", "/jsonrpc", Some(&call));
    assert!(answer["error"].is_null(), "{method}: {answer}");
    answer["result"].take()
}

/// The name of a task in aria2's dialect.
fn gid(id: &str) -> String {
    id.replace('-', "")[..16].to_owned()
}

/// Everything below a directory but directories, as paths from there, in order.
fn below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let entries = match fs::read_dir(next) {
            // A directory may be deleted meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.unwrap(),
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let path = path.strip_prefix(directory).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The names of `peers` as parameters of a magnet link.
fn peers(peers: &[SocketAddr]) -> String {
    let each = peers.iter().map(|peer| format!("&x.pe={peer}"));
    each.collect::<Vec<_>>().concat()
}

/// A file of many small ones, with what it is to hold.
fn many_files(directory: &Path, count: u64) -> Vec<(String, Content)> {
    let mut files = Vec::new();
    for number in 0..count {
        let name = format!("d{:02}/f{number:04}", number % 37);
        let content = Content::seeded(number, 1000 + number);
        let path: PathBuf = directory.join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_vec()).unwrap();
        files.push((name, content));
    }
    // As a torrent lists them.
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}
