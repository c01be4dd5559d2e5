//! Who chooses the files of a torrent.

use std::{fmt, future::Future, pin::Pin};

use metainfo::InfoHash;

/// A file that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedFile {
    /// Its place in the torrent, from 0: what [`transfer::TorrentOptions::files`] has.
    pub index: u32,
    /// Its path in the torrent, with `/` between names.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Every file.
    All,
    /// These files, by [`OfferedFile::index`].
    Files(Box<[u32]>),
    /// None: the download waits until it is resumed.
    Cancelled,
}

/// The future of [`Chooser::choose`].
pub type ChoiceFuture = Pin<Box<dyn Future<Output = Choice> + Send>>;

/// Asks the user which files of a torrent to download.
pub trait Chooser: fmt::Debug + Send + Sync {
    /// Asks once, when the files of a torrent are known. Resolves at once if nobody can answer, and after a while in any
    /// case. The implementation records the choice, so that it is not asked again. The future may be dropped.
    fn choose(&self, torrent: InfoHash, files: Vec<OfferedFile>) -> ChoiceFuture;
}
