//! transmission-daemon.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LOOK_EVERY, Owned, PATIENCE, free_port, wait_until};
use crate::Answer;

/// A daemon with a directory of its own. It connects to no peer of the loopback by itself, but accepts them.
#[derive(Debug)]
pub struct Transmission {
    _process: Owned,
    _directory: TempDir,
    peer: SocketAddr,
    rpc: SocketAddr,
    session: String,
}

impl Transmission {
    /// A daemon without torrents, that finds peers through trackers only.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("there is room for temporary files");
        let [peer, rpc] = [free_port(), free_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let settings = json!({
            "bind-address-ipv4": "127.0.0.1", "peer-port": peer.port(), "peer-port-random-on-start": false,
            "rpc-bind-address": "127.0.0.1", "rpc-port": rpc.port(), "rpc-whitelist-enabled": false,
            "dht-enabled": false, "lpd-enabled": false, "utp-enabled": false, "port-forwarding-enabled": false,
            "download-dir": directory.path().join("files"), "ratio-limit-enabled": false,
        });
        std::fs::write(directory.path().join("settings.json"), settings.to_string())
            .expect("the directory is writable");
        let child = Command::new("/usr/bin/transmission-daemon")
            .args(["--foreground", "--config-dir"])
            .arg(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs transmission-daemon (apt-get install transmission-daemon); tests/run installs it");
        let mut daemon = Self {
            _process: Owned(child),
            _directory: directory,
            peer,
            rpc,
            session: String::new(),
        };
        wait_until("transmission answers", || {
            daemon.try_ask("session-get", &json!({})).is_some()
        });
        daemon
    }

    /// Where it accepts peers.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Adds a torrent whose files are, or will be, in `directory`, and looks at what is there.
    #[track_caller]
    pub fn add(&mut self, torrent: &[u8], directory: &Path) {
        let added = json!({"metainfo": BASE64.encode(torrent), "download-dir": directory});
        let answer = self.ask("torrent-add", &added);
        assert!(answer["torrent-added"].is_object(), "{answer}");
    }

    /// The fields `percentDone`, `uploadedEver`, `downloadedEver`, `error`, `errorString` and `peersConnected` of its torrent.
    #[track_caller]
    pub fn state(&mut self) -> Value {
        let fields = [
            "percentDone",
            "uploadedEver",
            "downloadedEver",
            "error",
            "errorString",
            "peersConnected",
            "status",
        ];
        self.ask("torrent-get", &json!({"fields": fields}))["torrents"][0].take()
    }

    /// Waits until it has everything.
    #[track_caller]
    pub fn wait_until_complete(&mut self) {
        wait_until("transmission has everything", || self.state()["percentDone"] == 1);
    }

    /// Waits until it has everything and serves it.
    #[track_caller]
    pub fn wait_until_seeding(&mut self) {
        const SEEDS: u64 = 6;
        wait_until("transmission seeds", || self.state()["status"] == SEEDS);
    }

    #[track_caller]
    fn ask(&mut self, method: &str, arguments: &Value) -> Value {
        self.try_ask(method, arguments).expect("transmission answers")
    }

    /// Calls a method of its RPC; `None` if it does not answer.
    fn try_ask(&mut self, method: &str, arguments: &Value) -> Option<Value> {
        let body = json!({"method": method, "arguments": arguments}).to_string();
        for _attempt in 0..2 {
            let answer = self.exchange(&body)?;
            if answer.status == 409 {
                // It wants a number of its own back, against requests of web pages.
                answer
                    .header("x-transmission-session-id")?
                    .clone_into(&mut self.session);
                continue;
            }
            let mut answer = answer.json();
            return (answer["result"] == "success").then(|| answer["arguments"].take());
        }
        None
    }

    fn exchange(&self, body: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect_timeout(&self.rpc, LOOK_EVERY).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let head = format!(
            "POST /transmission/rpc HTTP/1.0\r\nHost: {}\r\nX-Transmission-Session-Id: {}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            self.rpc,
            self.session,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        Answer::read(&bytes)
    }
}
