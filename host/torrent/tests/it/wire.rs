//! A peer made of a socket, for what no client does.

use std::{net::SocketAddr, time::Duration};

use metainfo::Info;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Peer(pub(crate) TcpStream);

/// The handshake of a peer with this identity.
pub(crate) fn handshake(info: &Info, id: u8) -> Vec<u8> {
    let mut bytes = b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x04".to_vec();
    bytes.extend(info.hash().as_bytes());
    bytes.extend([id; 20]);
    bytes
}

/// A message with this id.
pub(crate) fn message(id: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(body.len() + 1).unwrap().to_be_bytes().to_vec();
    bytes.push(id);
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

impl Peer {
    /// Connects and exchanges handshakes.
    pub(crate) async fn connect(address: SocketAddr, info: &Info, id: u8) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&handshake(info, id)).await.unwrap();
        let mut peer = Self(stream);
        peer.read_handshake().await;
        peer
    }

    /// Accepts a connection and exchanges handshakes.
    pub(crate) async fn accept(listener: &TcpListener, info: &Info, id: u8) -> Self {
        let (mut stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        stream.write_all(&handshake(info, id)).await.unwrap();
        let mut peer = Self(stream);
        peer.read_handshake().await;
        peer
    }

    async fn read_handshake(&mut self) {
        let mut bytes = [0; 68];
        timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
    }

    pub(crate) async fn send(&mut self, id: u8, body: &[u8]) {
        self.0.write_all(&message(id, body)).await.unwrap();
    }

    /// The next message: its id and body; `None` once the connection is closed.
    pub(crate) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            let mut length = [0; 4];
            timeout(PATIENCE, self.0.read_exact(&mut length)).await.unwrap().ok()?;
            let length = u32::from_be_bytes(length) as usize;
            let mut bytes = vec![0; length];
            timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.unwrap().ok()?;
            if let Some((id, body)) = bytes.split_first() {
                return Some((*id, body.to_vec()));
            }
        }
    }

    /// Waits for a message of this id.
    pub(crate) async fn wait_for(&mut self, id: u8) -> Vec<u8> {
        loop {
            let (found, body) = self.next().await.expect("the connection stays open");
            if found == id {
                return body;
            }
        }
    }

    /// Whether the connection is closed within the time that a test waits.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let reading = async {
            while let Ok(count) = self.0.read(&mut buffer).await {
                if count == 0 {
                    break;
                }
            }
        };
        timeout(Duration::from_secs(5), reading).await.is_ok()
    }

    /// Serves blocks of `content` as long as it is asked for them. Returns how many bytes were sent.
    pub(crate) async fn serve(&mut self, content: &[u8], piece: usize, mut change: impl FnMut(&mut Vec<u8>)) -> usize {
        let mut sent = 0;
        while let Some((id, body)) = self.next().await {
            if id != 6 {
                continue;
            }
            let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap()) as usize;
            let begin = number(0) * piece + number(4);
            let mut data = body[..8].to_vec();
            let mut block = content[begin..begin + number(8)].to_vec();
            change(&mut block);
            sent += block.len();
            data.extend(block);
            if self.0.write_all(&message(7, &data)).await.is_err() {
                break;
            }
        }
        sent
    }
}
