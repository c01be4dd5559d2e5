//! opentracker, over HTTP and UDP.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::{Owned, free_port, wait_until};

/// A tracker on a port of both protocols, for torrents of a list.
#[derive(Debug)]
pub struct Opentracker {
    _process: Owned,
    port: u16,
    _directory: TempDir,
}

impl Opentracker {
    /// A tracker of the torrents with these hashes, in hexadecimal digits.
    pub fn start(hashes: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is room for temporary files");
        let port = free_port();
        // Debian's serves torrents of a list only, which it reads as another user.
        let list = directory.path().join("torrents");
        std::fs::write(&list, hashes.join("\n") + "\n").expect("the directory is writable");
        let readable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), readable).expect("the directory is ours");
        let digits = port.to_string();
        let child = Command::new(program())
            .args(["-i", "127.0.0.1", "-p", &digits, "-P", &digits, "-w"])
            .arg(list)
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program is there");
        wait_until("opentracker listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            _process: Owned(child),
            port,
            _directory: directory,
        }
    }

    /// Its URL over HTTP.
    pub fn http(&self) -> String {
        format!("http://127.0.0.1:{}/announce", self.port)
    }

    /// Its URL over UDP.
    pub fn udp(&self) -> String {
        format!("udp://127.0.0.1:{}/announce", self.port)
    }

    /// Waits until it knows so many clients of a torrent. Those that come later are told of them.
    #[track_caller]
    pub fn wait_until_known(&self, hash: &str, clients: u64) {
        wait_until("opentracker knows everybody", || {
            self.clients(hash).is_some_and(|known| known >= clients)
        });
    }

    /// How many have announced a torrent.
    fn clients(&self, hash: &str) -> Option<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let escaped: Vec<_> = hash
            .as_bytes()
            .chunks(2)
            .map(|digits| [b"%", digits].concat())
            .collect();
        stream.write_all(b"GET /scrape?info_hash=").ok()?;
        stream.write_all(&escaped.concat()).ok()?;
        stream.write_all(b" HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer);
        let number = |key: &str| {
            let digits = answer.split(key).nth(1)?.split('e').next()?;
            digits.parse::<u64>().ok()
        };
        Some(number("8:completei")? + number("10:incompletei")?)
    }
}

fn program() -> &'static str {
    let places = ["/usr/bin/opentracker", "/usr/local/bin/opentracker"];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    found.expect("this test needs opentracker (apt-get install opentracker); tests/run installs it")
}
