//! What describes a torrent: metainfo files, info dictionaries, magnet links. Pure.
//!
//! *Owns* the reader and writer of bencode, what is refused of a torrent (paths above all) and every limit of it, magnet
//! links, and the plan by which a torrent of files is created.
//!
//! *Never* touches a disk or the network, and knows no peer and no tracker beyond its URL. Nothing is trusted: all of this
//! was written by others.
//!
//! Start reading at [`Metainfo::parse`] and [`Info::parse`].
//!
//! # Layers
//!
//! - `create`: the torrent of files
//! - `metainfo`: the file `.torrent`
//! - `magnet`: magnet links
//! - `info`: the info dictionary, which the info hash identifies
//! - `path`: names of files
//! - `source`: URLs of trackers and webseeds
//! - `error`, `info_hash`, `limit`: vocabulary
//! - `bencode`: the encoding

pub mod bencode;
pub mod create;
mod error;
mod info;
mod info_hash;
mod limit;
mod magnet;
mod metainfo;
mod path;
mod source;

pub use error::{InvalidPath, MetainfoError, PathProblem};
pub use info::{File, Info};
pub use info_hash::{InfoHash, InvalidInfoHash};
pub use limit::{
    MAX_FILES, MAX_INFO_BYTES, MAX_MAGNET_BYTES, MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MAX_PIECES, MAX_TRACKERS,
    MAX_WEBSEEDS,
};
pub use magnet::{InvalidMagnet, Magnet, PeerAddress};
pub use metainfo::Metainfo;
pub use source::{TRACKER_SCHEMES, tracker, webseed};
