//! What a session and its torrents are started with.

use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, sync::Arc, time::Duration};

use egress::{Names, peer::PeerReach};
use metainfo::{Info, InfoHash};
use transfer::{FileName, Lanes, RateLimits, SafeUrl};

use crate::{
    heart::Priority,
    webseed::{Webseed, WebseedClient},
};

/// What a session is started with.
#[derive(Debug)]
pub struct SessionConfig {
    /// Ports of which the first free one accepts peers.
    pub ports: RangeInclusive<u16>,
    /// Addresses on which peers are accepted.
    pub addresses: Vec<IpAddr>,
    /// Directory of the records that make a restart fast.
    pub state_directory: PathBuf,
    /// Threads for sockets and files.
    pub lanes: Lanes,
    /// Limits of connections; [`crate::Session::set_connections`] changes them.
    pub connections: Connections,
    /// Let peers tell each other about peers (BEP 11); [`crate::Session::set_exchange`] changes it. Never for private
    /// torrents.
    pub is_exchange_on: bool,
    /// Whether connections are obfuscated; [`crate::Session::set_encryption`] changes it.
    pub encryption: Encryption,
    /// The name resolver, for proxies.
    pub names: Names,
    /// Addresses that no connection is made to or accepted from.
    pub filter: Option<Arc<dyn AddressFilter>>,
    /// Fetches from webseeds; without it they are not used.
    pub webseeds: Option<Arc<dyn WebseedClient>>,
}

/// Whether connections to peers look like random bytes (MSE), so that they are not told apart and slowed down. It hides
/// nothing from somebody who knows the torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encryption {
    /// Never.
    Disabled,
    /// If the peer wants it; connections that we make are tried without it first.
    #[default]
    Enabled,
    /// Always: peers without it are not used.
    Forced,
}

/// Limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Of the whole session.
    pub total: usize,
    /// Of one torrent.
    pub per_torrent: usize,
    /// That are being made at the same time.
    pub half_open: usize,
}

impl Default for Connections {
    /// As libtorrent: 200, 50 and 30, so that home routers bear it.
    fn default() -> Self {
        Self {
            total: 200,
            per_torrent: 50,
            half_open: 30,
        }
    }
}

/// Addresses that are not wanted as peers.
pub trait AddressFilter: std::fmt::Debug + Send + Sync {
    /// Whether a peer may have this address.
    fn allows(&self, address: IpAddr) -> bool;
}

/// Where an address of a peer comes from. The order is that of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerSource {
    /// The user named it.
    User,
    /// A tracker.
    Tracker,
    /// The local network.
    LocalNetwork,
    /// The distributed hash table.
    Dht,
    /// Another peer.
    Exchange,
    /// It connected to us.
    Incoming,
}

/// A torrent to add.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices of the user")]
pub struct TorrentSpec {
    /// What it is.
    pub content: Content,
    /// Directory in which its file, or the directory of its files, is stored.
    pub directory: PathBuf,
    /// The name of the file or directory. The torrent fails if it is taken by anything that an earlier run of this torrent
    /// did not make. Without it, it is the torrent's own, numbered if that is taken.
    pub name: Option<FileName>,
    /// Paths of files in place of those that the torrent names, by their places: below the directory, and of a torrent of one
    /// file its name. Places beyond the last file are ignored, and all of them if an earlier run recorded where the files are.
    pub paths: Vec<(u32, String)>,
    /// What is there is hashed and used.
    pub uses_existing: bool,
    /// Everything that is there is hashed, although an earlier run recorded which pieces are right.
    pub is_rechecked: bool,
    /// Only upload what is there, and never change a file. What an earlier run recorded is believed unless a file changed
    /// since; the rest is hashed. A wanted file that is missing or has other bytes is a failure that names it.
    pub is_seed_only: bool,
    /// Add it without starting it.
    pub is_paused: bool,
    /// Stop once the metadata is there, so that files can be chosen.
    pub stops_after_metadata: bool,
    /// Priority of each file; files beyond the list are wanted as usual.
    pub priorities: Vec<Priority>,
    /// In which order pieces are downloaded.
    pub order: Order,
    /// Limits of what it downloads; [`crate::Torrent::set_limits`] replaces them.
    pub download: RateLimits,
    /// Limits of what it uploads.
    pub upload: RateLimits,
    /// The most bytes of blocks that it uploads in this session ([`crate::TorrentView::uploaded`]). No peer is served beyond
    /// them, but each may finish the piece that it is getting. `None` is no limit.
    pub most_uploaded: Option<u64>,
    /// Peers that are served at once.
    pub upload_slots: usize,
    /// The most connections; the session's limit if it is lower.
    pub max_peers: usize,
    /// Web servers that have the files (BEP 19).
    pub webseeds: Vec<Webseed>,
    /// The proxy (HTTP or SOCKS) of all its connections: none goes past it, and none is accepted.
    pub proxy: Option<SafeUrl>,
    /// Which peers that other peers or trackers name may be reached.
    pub reach: PeerReach,
    /// How long the metadata of a magnet link may take.
    pub metadata_timeout: Option<Duration>,
}

impl TorrentSpec {
    /// A torrent with the usual settings.
    pub fn new(content: Content, directory: PathBuf) -> Self {
        Self {
            content,
            directory,
            name: None,
            paths: Vec::new(),
            uses_existing: false,
            is_rechecked: false,
            is_seed_only: false,
            is_paused: false,
            stops_after_metadata: false,
            priorities: Vec::new(),
            order: Order::default(),
            download: RateLimits::unlimited(),
            upload: RateLimits::unlimited(),
            most_uploaded: None,
            upload_slots: 8,
            max_peers: Connections::default().per_torrent,
            webseeds: Vec::new(),
            proxy: None,
            reach: PeerReach::Networks,
            metadata_timeout: None,
        }
    }
}

/// In which order pieces are downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// From the beginning to the end, instead of the rarest first.
    pub is_sequential: bool,
    /// The pieces of so many bytes at the beginning of each file before all others, so that players can show it.
    pub head_bytes: u64,
    /// The same of its end.
    pub tail_bytes: u64,
}

/// What a torrent is known by.
#[derive(Debug, Clone)]
pub enum Content {
    /// Everything about it.
    Info(Info),
    /// Its hash alone, as in a magnet link: the rest comes from peers.
    Hash(InfoHash),
}

impl Content {
    /// The hash.
    pub fn info_hash(&self) -> InfoHash {
        match self {
            Self::Info(info) => info.hash(),
            Self::Hash(hash) => *hash,
        }
    }
}
