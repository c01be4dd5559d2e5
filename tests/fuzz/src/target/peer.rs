//! What peers send: extensions of the handshake and messages, to torrents that wait for metadata, download and seed.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use egress::Names;
use metainfo::{
    Info,
    create::{MIN_PIECE_LENGTH, Options, Plan},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Runtime,
    time::timeout,
};
use torrent::{Connections, Content, Session, SessionConfig, Status, Torrent, TorrentSpec};
use transfer::Lanes;

use super::Target;

/// How long a connection may go on after its end was sent. A machine that searches is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most memory that peers may cost, in blocks that are kept: more than that much is never answered.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The torrents, by what they do.
const DOES: [&str; 3] = ["seeds", "downloads", "waits"];

/// A session with torrents, and who connects next: each is another peer, because one that lies is not let in again.
struct Swarm {
    runtime: Runtime,
    session: Session,
    torrents: Vec<Torrent>,
    _root: TempDir,
    next: u64,
}

/// The first byte chooses the torrent, the eight after it are the reserved ones of the handshake, the rest is what follows.
pub(super) fn peer() -> Target {
    let mut swarm = Swarm::start();
    Box::new(move |data| {
        if let Some((which, rest)) = data.split_first()
            && let Some((reserved, messages)) = rest.split_at_checked(8)
        {
            swarm.receive(usize::from(*which) % DOES.len(), reserved, messages);
        }
    })
}

/// A torrent of this name, of three pieces of zeros.
fn of_zeros(name: &str) -> Info {
    let length = 2 * u64::from(MIN_PIECE_LENGTH) + 77;
    let options = Options {
        piece_length: Some(MIN_PIECE_LENGTH),
        ..Options::default()
    };
    let plan = Plan::of_file(name, length, options).expect("it is a plain name");
    let mut hasher = plan.hasher();
    let zeros = vec![0; usize::try_from(length).expect("it is short")];
    hasher.update(&zeros).expect("that is its length");
    hasher.finish().expect("that is all of it").info
}

impl Swarm {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs nothing but descriptors");
        let root = tempfile::tempdir().expect("there is room for temporary files");
        let (session, torrents) = runtime.block_on(async {
            let session = Session::start(SessionConfig {
                ports: 0..=0,
                addresses: vec![IpAddr::from([127, 0, 0, 1])],
                state_directory: root.path().join("state"),
                lanes: Lanes::default(),
                connections: Connections::default(),
                is_exchange_on: true,
                names: Names::default(),
                encryption: torrent::Encryption::default(),
                filter: None,
                webseeds: None,
            });
            let session = session.expect("the loopback can be listened on");
            let mut torrents = Vec::new();
            for name in DOES {
                let info = of_zeros(name);
                if name == "seeds" {
                    let zeros = vec![0; usize::try_from(info.total_length()).expect("it is short")];
                    std::fs::write(root.path().join(name), zeros).expect("a temporary directory is writable");
                }
                let content = match name {
                    "waits" => Content::Hash(info.hash()),
                    _ => Content::Info(info),
                };
                let spec = TorrentSpec {
                    uses_existing: name == "seeds",
                    ..TorrentSpec::new(content, root.path().to_owned())
                };
                torrents.push(session.add(spec).expect("each is another one"));
            }
            let mut seeding = torrents[0].watch();
            let seeds = seeding.wait_for(|view| view.status == Status::Seeding).await;
            drop(seeds.expect("the session runs"));
            (session, torrents)
        });
        Self {
            runtime,
            session,
            torrents,
            _root: root,
            next: 0,
        }
    }

    /// A peer that connects, says this, and leaves. The session closes its side within bounds, and goes on.
    fn receive(&mut self, which: usize, reserved: &[u8], messages: &[u8]) {
        self.next += 1;
        let mut said = b"\x13BitTorrent protocol".to_vec();
        said.extend_from_slice(reserved);
        said.extend_from_slice(self.torrents[which].info_hash().as_bytes());
        said.extend_from_slice(format!("-XX0001-{:012}", self.next % 1_000_000_000_000).as_bytes());
        said.extend_from_slice(messages);
        let port = self.session.port().expect("it listens");
        let ended = async { timeout(PATIENCE, exchange(port, &said)).await };
        let answered = self.runtime.block_on(ended);
        let answered = answered.expect("a connection whose other end is closed ends");
        assert!(
            answered <= MAX_ANSWER_BYTES,
            "{answered} bytes in answer to {}",
            said.len()
        );
        let view = self.torrents[which].view();
        let expected = ["Seeding", "Downloading", "Metadata"][which];
        let status = format!("{:?}", view.status);
        // What downloads may have got its zeros.
        assert!(
            status == expected || which > 0,
            "the torrent that {} is {status}",
            DOES[which]
        );
        assert!(
            !status.starts_with("Failed"),
            "the torrent that {} is {status}",
            DOES[which]
        );
    }
}

/// Sends everything and the end, and gives how much came back until the other side has closed as well.
async fn exchange(port: u16, said: &[u8]) -> usize {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return 0;
    };
    let (mut input, mut output) = stream.split();
    let sending = async {
        // It may be closed before everything is sent.
        let _refused = output.write_all(said).await;
        let _refused = output.shutdown().await;
    };
    let reading = async {
        let (mut count, mut buffer) = (0, vec![0; 64 * 1024]);
        while let Ok(more @ 1..) = input.read(&mut buffer).await {
            count += more;
        }
        count
    };
    tokio::join!(sending, reading).1
}
