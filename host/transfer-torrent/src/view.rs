//! What is shown of torrents.

use std::path::Path;

use metainfo::{Info, InfoHash, MetainfoError};
use peer_discovery::{DhtStatus, MappingStatus};
use transfer::{Failure, SafeUrl};

/// A task's torrent.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    /// The task's first URL.
    pub url: &'a SafeUrl,
    /// The directory that it is downloaded to.
    pub directory: &'a Path,
    /// The path that a run reserved, or has finished.
    pub path: Option<&'a Path>,
    /// Paths that its files have in place of those that the torrent names.
    pub paths: &'a [(u32, String)],
}

/// A metainfo file that was stored.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The URL of a task that downloads it: its magnet link, with its hash and name alone.
    pub url: SafeUrl,
    /// What it has.
    pub info: Info,
}

/// Why a metainfo file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum NotTorrent {
    /// It is none, or one that is refused.
    #[error(transparent)]
    Invalid(#[from] MetainfoError),
    /// It could not be written.
    #[error(transparent)]
    Store(Failure),
}

/// Why a torrent was not shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum TorrentError {
    /// The URL is of no torrent.
    #[error("the task is no torrent")]
    NotTorrent,
    /// The metadata is not known yet.
    #[error("the metadata of the torrent {0} is not known yet")]
    NoMetadata(InfoHash),
    /// It must run for this.
    #[error("the torrent {0} is not running; resume the task first")]
    NotRunning(InfoHash),
    /// It failed.
    #[error(transparent)]
    Failed(Failure),
}

/// A running torrent's swarm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Connected peers.
    pub peers: usize,
    /// Those of them that have everything.
    pub seeds: usize,
    /// Bytes that arrived and were of no use.
    pub wasted_bytes: u64,
    /// Pieces that are there.
    pub pieces_have: u32,
    /// It looks for the metadata of its magnet link.
    pub is_without_metadata: bool,
    /// Whether the run seeds.
    pub is_seeding: bool,
}

/// The session of all torrents.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Port on which peers are accepted.
    pub port: Option<u16>,
    /// Nodes of the hash table.
    pub dht: DhtStatus,
    /// Why the local network is not asked.
    pub lsd_error: Option<String>,
    /// The port that the router opened.
    pub mapping: MappingStatus,
}
