//! Peers that misbehave.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    Content,
    server::{Accepted, Server},
};

/// Bytes of a block.
const BLOCK: usize = 16 * 1024;

/// No message of an honest peer is longer.
const MAX_MESSAGE: usize = 1 << 20;

/// What a peer does that says it has everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It serves honestly. What it sends is counted.
    Honest,
    /// It serves blocks with a wrong byte.
    Wrong,
    /// It sends blocks that were not asked for, as many as are taken.
    Floods,
    /// It takes requests and answers each after this time.
    Slow(Duration),
    /// It takes requests and answers none.
    Silent,
    /// It serves honestly, and names this peer to others (BEP 11).
    Names(SocketAddr),
}

/// A peer on loopback that serves a torrent of one file. Dropping it ends its connections and joins its threads.
#[derive(Debug)]
pub struct HostilePeer {
    server: Server,
    sent: Arc<AtomicU64>,
    connections: Arc<AtomicUsize>,
}

/// What all its connections know.
struct Torrent {
    hash: [u8; 20],
    content: Content,
    piece: u64,
    manner: Manner,
    /// Its own: of two connections with one id, a client keeps only the first.
    peer_id: String,
}

/// How many peers there were before.
static PEERS: AtomicUsize = AtomicUsize::new(0);

impl HostilePeer {
    /// A peer with the torrent of this hash, in hexadecimal digits, and this length of a piece.
    pub fn start(hash: &str, content: &Content, piece: u64, manner: Manner) -> Self {
        let hash = data_encoding::HEXLOWER.decode(hash.as_bytes()).expect("it is a hash");
        let torrent = Torrent {
            hash: hash.try_into().expect("it has twenty bytes"),
            content: content.clone(),
            piece,
            manner,
            peer_id: format!("-XX0001-{:012}", PEERS.fetch_add(1, Ordering::Relaxed)),
        };
        let (sent, connections) = (Arc::<AtomicU64>::default(), Arc::<AtomicUsize>::default());
        let (all_sent, all_connections) = (Arc::clone(&sent), Arc::clone(&connections));
        let server = Server::start(move |accepted| {
            all_connections.fetch_add(1, Ordering::Relaxed);
            let _until_it_is_cut_off = serve(accepted, &torrent, &all_sent);
        });
        Self {
            server,
            sent,
            connections,
        }
    }

    /// Where it accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Bytes of blocks that it has sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Connections that were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn serve(accepted: Accepted, torrent: &Torrent, sent: &AtomicU64) -> io::Result<()> {
    let Accepted { mut stream, stop, .. } = accepted;
    // With the extensions of BEP 10, so that nothing is missing, and of BEP 6, for "have all".
    let mut hello = b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x04".to_vec();
    hello.extend(torrent.hash);
    hello.extend(torrent.peer_id.as_bytes());
    stream.write_all(&hello)?;
    stream.read_exact(&mut [0; 68])?;
    stream.write_all(&message(14, &[]))?;
    stream.write_all(&message(1, &[]))?;
    if let Manner::Names(SocketAddr::V4(peer)) = torrent.manner {
        // Its number of that extension is 1; the other side's is in the handshake that it sends.
        stream.write_all(&message(20, b"\0d1:md6:ut_pexi1eee"))?;
        let theirs = loop {
            let (id, body) = next(&mut stream)?;
            if let Some(number) = (id == 20).then(|| pex_number(&body)).flatten() {
                break number;
            }
        };
        let compact = [&peer.ip().octets()[..], &peer.port().to_be_bytes()].concat();
        let named = [&[theirs], &b"d5:added6:"[..], &compact, b"7:added.f1:\x02e"].concat();
        stream.write_all(&message(20, &named))?;
    }
    if torrent.manner == Manner::Floods {
        let block = message(7, &[numbers(&[0, 0]), vec![1; BLOCK]].concat());
        loop {
            stream.write_all(&block)?;
            sent.fetch_add(BLOCK as u64, Ordering::Relaxed);
        }
    }
    loop {
        let (id, body) = next(&mut stream)?;
        if id != 6 || body.len() != 12 {
            continue;
        }
        match torrent.manner {
            Manner::Silent => continue,
            Manner::Slow(pause) if stop.pause(pause) => return Ok(()),
            _ => {}
        }
        let number = |at: usize| {
            body[at..at + 4]
                .iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        let begin = number(0) * torrent.piece + number(4);
        let mut block = torrent.content.slice(begin..begin + number(8));
        if torrent.manner == Manner::Wrong {
            block[0] ^= 1;
        }
        stream.write_all(&message(7, &[&body[..8], &block].concat()))?;
        sent.fetch_add(block.len() as u64, Ordering::Relaxed);
    }
}

/// The number of the exchange of peers in the handshake of extensions.
fn pex_number(handshake: &[u8]) -> Option<u8> {
    const KEY: &[u8] = b"6:ut_pexi";
    let at = handshake.windows(KEY.len()).position(|part| part == KEY)? + KEY.len();
    let digits = handshake[at..].split(|byte| *byte == b'e').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The next message: its id and body.
fn next(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_MESSAGE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes)?;
        if let Some((id, body)) = bytes.split_first() {
            return Ok((*id, body.to_vec()));
        }
    }
}

/// A message with this id.
fn message(id: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).expect("messages are short");
    [&length.to_be_bytes()[..], &[id], body].concat()
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}
