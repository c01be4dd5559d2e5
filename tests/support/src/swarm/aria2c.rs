//! aria2c, which takes peers from trackers only.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use super::{Owned, free_port, wait_until};

/// A process with one torrent.
#[derive(Debug)]
pub struct Aria2c {
    process: Owned,
    peer: SocketAddr,
}

impl Aria2c {
    /// Downloads to `directory` and ends.
    pub fn leech(torrent: &Path, directory: &Path, tracker: &str) -> Self {
        Self::start(torrent, directory, tracker, &["--seed-time=0"])
    }

    /// Seeds what is in `directory`, after it has looked at it.
    pub fn seed(torrent: &Path, directory: &Path, tracker: &str) -> Self {
        Self::start(
            torrent,
            directory,
            tracker,
            &["--seed-ratio=0", "--check-integrity=true"],
        )
    }

    fn start(torrent: &Path, directory: &Path, tracker: &str, options: &[&str]) -> Self {
        let peer = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let child = Command::new("/usr/bin/aria2c")
            .args([
                "--no-conf",
                "--quiet",
                "--enable-dht=false",
                "--bt-enable-lpd=false",
                "--allow-overwrite=true",
            ])
            .args(["--file-allocation=none", "--interface=127.0.0.1"])
            .arg(format!("--listen-port={}", peer.port()))
            .arg(format!("--bt-tracker={tracker}"))
            .arg("--dir")
            .arg(directory)
            .args(options)
            .arg(torrent)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs aria2c (apt-get install aria2); tests/run installs it");
        Self {
            process: Owned(child),
            peer,
        }
    }

    /// Where it accepts peers.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Waits for its end, which is a good one.
    #[track_caller]
    pub fn wait(&mut self) {
        let mut ended = None;
        wait_until("aria2c ends", || {
            ended = self.process.0.try_wait().expect("a child can be waited for");
            ended.is_some()
        });
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    }
}
