//! What a session and its parts begin with, and what they have in common.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use egress::{HttpClient, Names};
use metainfo::InfoHash;
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::{GivenBy, SafeUrl};

use crate::{peer::Found, settings::Settings, status::Status, tracker::Counters};

/// For `stopped` to reach the trackers of a torrent, or of all torrents when the session ends. Processes that are asked to
/// end have little more before they are killed.
pub const STOP_TIME: Duration = Duration::from_secs(5);

/// What a session needs.
#[derive(Debug)]
pub struct Config {
    /// What the user decided.
    pub settings: Settings,
    /// The port on which peers reach us over TCP.
    pub port: u16,
    /// How we are called. Trackers and peers see it.
    pub peer_id: [u8; 20],
    /// For trackers over HTTP, and lists of trackers.
    pub http: HttpClient,
    /// The resolver of names.
    pub names: Names,
    /// The addresses of the hash table's sockets, one for each family; with port 0 any. One that is taken is replaced by
    /// any other.
    pub dht_addresses: Vec<SocketAddr>,
    /// The first nodes of the hash table, if no others are known: hosts and ports. If the user named private addresses
    /// or this machine, nodes there are taken, too.
    pub dht_bootstrap: Vec<(String, u16)>,
    /// Where the nodes of the hash table are kept. A cache: it is ignored if it cannot be read.
    pub dht_file: Option<PathBuf>,
    /// Owns what is spawned.
    pub tracker: TaskTracker,
    /// Cancelled to stop; trackers are told within [`STOP_TIME`].
    pub stop: CancellationToken,
}

/// The entrances to the public hash table.
pub const DHT_BOOTSTRAP: [(&str, u16); 4] = [
    ("dht.libtorrent.org", 25401),
    ("dht.transmissionbt.com", 6881),
    ("router.bittorrent.com", 6881),
    ("router.utorrent.com", 6881),
];

/// A torrent that looks for peers.
#[derive(Debug, Clone)]
pub struct TorrentSpec {
    /// The torrent.
    pub info_hash: InfoHash,
    /// Tiers of trackers.
    pub trackers: Vec<Vec<SafeUrl>>,
    /// Nodes of the hash table that the torrent names.
    pub nodes: Vec<(String, u16)>,
    /// Who supplied the torrent, and so decided where its trackers are.
    pub given_by: GivenBy,
    /// Peers come from its trackers only (BEP 27). A magnet link's torrent is not known to be private before its info
    /// dictionary is there: see [`crate::Subscription::set_private`].
    pub is_private: bool,
    /// Its own proxy for trackers over HTTP; without it, [`Settings::proxy`](crate::Settings::proxy). With one, nothing is
    /// sent over UDP for this torrent.
    pub proxy: Option<SafeUrl>,
    /// What it has moved so far.
    pub counters: Counters,
}

/// A list of trackers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListView {
    /// Where it is.
    pub url: SafeUrl,
    /// The trackers in it, or why it was not read.
    pub trackers: Result<usize, String>,
}

/// A torrent that looks for peers, for the sources that all torrents share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) info_hash: InfoHash,
    pub(crate) nodes: Vec<(String, u16)>,
}

/// What the shared sources learn from the loop, and how they answer it.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) settings: watch::Receiver<Settings>,
    pub(crate) wanted: watch::Receiver<Arc<Vec<Wanted>>>,
    pub(crate) found: mpsc::Sender<(InfoHash, Found)>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) port: u16,
    pub(crate) stop: CancellationToken,
}
