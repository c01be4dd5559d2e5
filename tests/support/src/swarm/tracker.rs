//! A tracker over HTTP that writes down what it is asked, and a port for datagrams that counts them.

use std::{
    io::Write as _,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use super::LOOK_EVERY;
use crate::{
    request::{Request, percent_decoded_bytes},
    server::{Accepted, Server, lock},
};

/// Something that a client told the tracker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announce {
    /// The torrent, in hexadecimal digits.
    pub hash: String,
    /// The port on which it accepts peers.
    pub port: u16,
    /// `started`, `completed`, `stopped` or nothing.
    pub event: String,
    /// Bytes sent.
    pub uploaded: u64,
    /// Bytes received.
    pub downloaded: u64,
    /// Bytes missing.
    pub left: u64,
    /// What the client calls itself.
    pub agent: String,
}

/// A tracker that gives every client the same peers. Dropping it ends its connections and joins its threads.
#[derive(Debug)]
pub struct Tracker {
    server: Server,
    peers: Arc<Mutex<Vec<SocketAddr>>>,
    log: Arc<Mutex<Vec<Announce>>>,
}

impl Tracker {
    /// A tracker that knows these peers, which are of IPv4.
    pub fn with_peers(peers: &[SocketAddr]) -> Self {
        let peers = Arc::new(Mutex::new(peers.to_vec()));
        let log = Arc::<Mutex<Vec<Announce>>>::default();
        let (known, written) = (Arc::clone(&peers), Arc::clone(&log));
        let server = Server::start(move |Accepted { mut stream, .. }| {
            let Some(request) = Request::read(&mut stream, 0, &Arc::default()) else {
                return;
            };
            lock(&written).push(announce(&request));
            let body = answer(&lock(&known));
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _broken_off = stream.write_all(&[head.as_bytes(), &body].concat());
        });
        Self { server, peers, log }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/announce", self.server.address())
    }

    /// One more peer.
    pub fn add_peer(&self, peer: SocketAddr) {
        lock(&self.peers).push(peer);
    }

    /// Everything that it was told so far.
    pub fn announces(&self) -> Vec<Announce> {
        lock(&self.log).clone()
    }
}

fn announce(request: &Request) -> Announce {
    let mut read = Announce {
        agent: request.header("user-agent").unwrap_or_default().to_owned(),
        ..Announce::default()
    };
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let number = || value.parse().unwrap_or_default();
        match key {
            "info_hash" => read.hash = data_encoding::HEXLOWER.encode(&percent_decoded_bytes(value)),
            "port" => read.port = value.parse().unwrap_or_default(),
            "event" => value.clone_into(&mut read.event),
            "uploaded" => read.uploaded = number(),
            "downloaded" => read.downloaded = number(),
            "left" => read.left = number(),
            _ => {}
        }
    }
    read
}

fn answer(peers: &[SocketAddr]) -> Vec<u8> {
    let mut compact = Vec::new();
    for peer in peers {
        if let SocketAddr::V4(peer) = peer {
            compact.extend(peer.ip().octets());
            compact.extend(peer.port().to_be_bytes());
        }
    }
    // The least interval that clients accept: a test does not wait for it.
    let mut body = format!("d8:intervali60e5:peers{}:", compact.len()).into_bytes();
    body.extend(compact);
    body.push(b'e');
    body
}

/// A port for datagrams that answers nothing and counts them. Dropping it joins its thread.
#[derive(Debug)]
pub struct Silence {
    address: SocketAddr,
    received: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Silence {
    /// Listens on a free port.
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = socket.local_addr().expect("it is bound");
        socket
            .set_read_timeout(Some(LOOK_EVERY))
            .expect("it is more than nothing");
        let (received, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, is_over) = (Arc::clone(&received), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !is_over.load(Ordering::Relaxed) {
                if socket.recv_from(&mut buffer).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            address,
            received,
            stop,
            thread: Some(thread),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many datagrams have come.
    pub fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let panicked = self.thread.take().is_some_and(|thread| thread.join().is_err());
        assert!(
            !panicked || std::thread::panicking(),
            "the reader of datagrams panicked"
        );
    }
}
