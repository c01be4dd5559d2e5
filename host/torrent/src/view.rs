//! What is shown of a torrent, and what it reports.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use metainfo::{Info, InfoHash};
use transfer::Failure;

use crate::{bitfield::Bitfield, config::PeerSource, geometry::Geometry, heart::Priority, storage::Places};

/// What a torrent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It looks for the metadata of a magnet link.
    Metadata,
    /// It hashes what is on the disk.
    Checking,
    /// It downloads.
    Downloading,
    /// Everything wanted is there; it uploads.
    Seeding,
    /// It does nothing until it is resumed.
    Paused,
    /// It stopped because of this, and does nothing until it is resumed.
    Failed(Failure),
    /// It was removed from the session.
    Removed,
}

/// A torrent as of the last second.
#[derive(Debug, Clone)]
pub struct TorrentView {
    /// What it does.
    pub status: Status,
    /// Everything about it, once that is known.
    pub info: Option<Info>,
    /// The file or directory that it is stored in, once that is known.
    pub path: Option<PathBuf>,
    /// Bytes of the wanted pieces.
    pub wanted_bytes: u64,
    /// How many of those are there and verified.
    pub done_bytes: u64,
    /// Bytes of blocks that arrived in this session.
    pub downloaded: u64,
    /// Bytes of blocks that were sent in this session.
    pub uploaded: u64,
    /// Bytes that arrived and were of no use.
    pub wasted: u64,
    /// Bytes per second.
    pub download_rate: u64,
    /// Bytes per second.
    pub upload_rate: u64,
    /// Connected peers.
    pub peers: usize,
    /// Connected peers that have everything.
    pub seeds: usize,
    /// Peers that were banned.
    pub banned: usize,
    /// Pieces that are there.
    pub pieces_have: u32,
    /// Every piece that was hashed since the check began, while checking.
    pub checked_pieces: u32,
}

/// A file of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    /// Where it is, or will be once it is complete.
    pub path: PathBuf,
    /// Bytes of the file.
    pub length: u64,
    /// Bytes of it that are there and verified.
    pub done_bytes: u64,
    /// How much it is wanted.
    pub priority: Priority,
}

impl FileView {
    /// Every file, as `places` say where it is and `have` what is there of it.
    pub(crate) fn all(
        info: &Info,
        directory: &Path,
        places: &Places,
        have: &Bitfield,
        priority: impl Fn(usize) -> Priority,
    ) -> Vec<Self> {
        let geometry = Geometry::new(info.piece_length(), info.total_length());
        let views = info.files().iter().enumerate().map(|(index, file)| {
            let (start, end) = (file.offset(), file.offset() + file.length());
            let there = geometry.pieces_of(start, end).filter(|piece| have.has(*piece));
            let bytes = there.map(|piece| {
                let begin = geometry.offset(piece).max(start);
                (geometry.offset(piece) + u64::from(geometry.length(piece))).min(end) - begin
            });
            Self {
                path: directory.join(places.final_relative(info, index)),
                length: file.length(),
                done_bytes: bytes.sum(),
                priority: priority(index),
            }
        });
        views.collect()
    }
}

/// A connected peer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the states of BEP 3, independent of each other"
)]
pub struct PeerView {
    /// Its address.
    pub address: SocketAddr,
    /// Its identity.
    pub peer_id: [u8; 20],
    /// What it calls itself.
    pub client: Option<String>,
    /// How it was found.
    pub source: PeerSource,
    /// Number of pieces that it has.
    pub pieces: u32,
    /// Which they are, as in [`PiecesView::have`].
    pub have: Vec<u8>,
    /// Bytes per second that it sends.
    pub download_rate: u64,
    /// Bytes per second that it gets.
    pub upload_rate: u64,
    /// Bytes of blocks that it sent.
    pub downloaded: u64,
    /// Bytes of blocks that it got.
    pub uploaded: u64,
    /// It does not serve us.
    pub is_choking_us: bool,
    /// It wants data of us.
    pub is_interested: bool,
    /// We do not serve it.
    pub is_choked: bool,
    /// We want data of it.
    pub is_interesting: bool,
    /// It owes data for long.
    pub is_snubbing: bool,
    /// It connected to us.
    pub is_incoming: bool,
}

/// The pieces of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiecesView {
    /// Which are there, as peers exchange it: the first piece is the highest bit of the first byte.
    pub have: Vec<u8>,
    /// How many connected peers have each.
    pub availability: Vec<u32>,
}

/// What happened to a torrent.
#[derive(Debug, Clone)]
pub struct Event {
    /// The torrent.
    pub info_hash: InfoHash,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The metadata of a magnet link is there.
    Metadata,
    /// A file is complete, verified and synced, and has its name. Its place in [`Info::files`].
    FileFinished(usize),
    /// Every wanted file is.
    Completed,
    /// It stopped because of this.
    Failed(Failure),
    /// The status changed otherwise.
    Status(Status),
}
