//! Downloads and seeds torrents as tasks of the engine: its URLs are magnet links.
//!
//! *Owns* the one session of all torrents, which begins with the first of them; the metainfo files of tasks; and what a run
//! of the engine is for a torrent, which outlives it for a moment so that seeding begins without a break.
//!
//! *Never* knows a task or its limits: it sees one [`transfer::Job`] at a time, and says of a torrent what it was asked.
//!
//! Start reading at [`Torrents`], then `run` (one run, start to end).
//!
//! # Layers
//!
//! - `follow`: links that lead to torrent files
//! - `torrents`: the handle
//! - `run`: one run
//! - `session`: what all torrents share
//! - `webseed`: web servers that have the files
//! - `swarm`: a live torrent and what finds its peers
//! - `shelf`: the stored metainfo files
//! - `view`, `config`, `chooser`: vocabulary

mod chooser;
mod config;
mod follow;
mod run;
mod session;
mod shelf;
mod swarm;
mod torrents;
mod view;
mod webseed;

pub use chooser::{Choice, ChoiceFuture, Chooser, OfferedFile};
pub use config::{Config, Settings};
pub use follow::Following;
pub use peer_discovery::{DhtStatus, ListView, MappingStatus, TrackerSource, TrackerStatus, TrackerView};
pub use torrent::{Encryption, FileView, PeerSource, PeerView, PiecesView, Priority};
pub use torrents::Torrents;
pub use view::{Kept, Live, NotTorrent, Of, SessionView, TorrentError};

/// The scheme of magnet links, which torrents are named by.
pub const SCHEMES: [&str; 1] = ["magnet"];
