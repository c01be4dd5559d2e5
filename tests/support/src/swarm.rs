//! Swarms on loopback: programs of other people's making, a tracker that writes down what it is asked, and peers that
//! misbehave. Dropping one ends it.

mod aria2c;
mod libtorrent;
mod opentracker;
mod peer;
mod tracker;
mod transmission;

use std::{
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, Instant},
};

pub use aria2c::Aria2c;
pub use libtorrent::{Libtorrent, Made, MakeTorrent};
pub use opentracker::Opentracker;
pub use peer::{HostilePeer, Manner};
pub use tracker::{Announce, Silence, Tracker};
pub use transmission::Transmission;

/// Nothing that a program of a swarm is waited for takes this long, on the slowest machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long is waited between two looks at another process.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process that ends with its owner.
#[derive(Debug)]
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _has_ended = self.0.kill();
        let _has_been_waited_for = self.0.wait();
    }
}

/// A port that nothing uses now, for both protocols.
pub fn free_port() -> u16 {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = socket.local_addr().expect("it is bound").port();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A script of `tests/clients`.
fn client(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients").join(name)
}

/// Waits until another process has got there.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "another process is watched from outside, on a thread that may block"
)]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}
