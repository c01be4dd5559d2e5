//! A BitTorrent engine: swarms, their peers and their files.
//!
//! *Owns* the peer protocol, the choice of pieces and peers, the files of torrents and the records that make a restart fast,
//! and the session that accepts peers for all torrents.
//!
//! *Never* knows a task, a queue or a setting, and finds no peers by itself: addresses come from the embedder, which asks
//! trackers and the distributed hash table. Only peers that other peers know (BEP 11) are found here.
//!
//! Start reading at [`Session`] and [`TorrentSpec`].
//!
//! # Layers
//!
//! - `driver`: connections, disk work, the session
//! - `handle`: what the embedder uses a torrent through
//! - `rehearsal`: a torrent without connections, for searches for hostile input
//! - `offline`: what there is of torrents outside of a session
//! - `view`: what it is shown
//! - `config`: what it starts with
//! - `heart`: a torrent and its peers as a pure function
//! - `storage`: the files
//! - `wire`: the peer protocol as bytes
//! - `webseed`: web servers as peers
//! - `bitfield`, `geometry`: sets of pieces, sizes of pieces

mod bitfield;
mod config;
mod driver;
mod geometry;
mod handle;
mod heart;
mod offline;
mod rehearsal;
mod storage;
mod view;
mod webseed;
mod wire;

pub use config::{AddressFilter, Connections, Content, Encryption, Order, PeerSource, SessionConfig, TorrentSpec};
pub use driver::session::{AddError, Session, StartError};
pub use egress::peer::PeerReach;
pub use handle::{CommandError, Gone, Torrent};
pub use heart::Priority;
pub use offline::{Inspected, inspect, is_recorded, leftovers, rename};
pub use rehearsal::rehearse;
pub use view::{Event, EventKind, FileView, PeerView, PiecesView, Status, TorrentView};
pub use webseed::{Webseed, WebseedAnswer, WebseedBody, WebseedClient, WebseedError, WebseedRequest};
