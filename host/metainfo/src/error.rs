//! Why a torrent is refused.

use std::fmt;

use crate::{
    bencode::BencodeError,
    limit::{MAX_COMPONENTS, MAX_FILES, MAX_PATH_BYTES, MAX_PIECE_LENGTH, MAX_PIECES},
};

/// Why a torrent is refused. Every message names the part, and the limit if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetainfoError {
    /// More bytes than any torrent has.
    #[error("the torrent has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// As many as there are.
        bytes: usize,
        /// The limit of what was parsed.
        limit: usize,
    },
    /// Not the encoding of torrents.
    #[error("this is not a torrent")]
    Bencode(#[from] BencodeError),
    /// No dictionary, or one without an info dictionary.
    #[error("this is not a torrent: it has no dictionary `info`")]
    NoInfo,
    /// Only version 2 of the protocol (BEP 52).
    #[error(
        "the torrent is for version 2 of BitTorrent only (BEP 52), which is not supported; ask for a hybrid or version 1"
    )]
    V2Only,
    /// A version that nobody has defined yet.
    #[error("the torrent is for version {0} of BitTorrent, which is unknown")]
    UnknownVersion(i64),
    /// A key is missing, or its value has another type.
    #[error("the torrent has no valid `{0}`")]
    Missing(&'static str),
    /// A piece length below 1 or beyond [`MAX_PIECE_LENGTH`].
    #[error("the torrent has a piece length of {0} bytes; it must be between 1 and {MAX_PIECE_LENGTH}")]
    PieceLength(i64),
    /// A length of a file below 0 or beyond what file systems store, or nothing to download at all.
    #[error("the torrent has no valid length")]
    Length,
    /// More than [`MAX_PIECES`].
    #[error("the torrent has {0} pieces; the limit is {MAX_PIECES}")]
    TooManyPieces(u64),
    /// Another number of hashes than pieces.
    #[error("the torrent has hashes for {found} pieces, and files for {expected}")]
    PieceCount {
        /// Pieces by the lengths of the files.
        expected: u64,
        /// Whole hashes.
        found: usize,
    },
    /// More than [`MAX_FILES`].
    #[error("the torrent has more than {MAX_FILES} files")]
    TooManyFiles,
    /// No file, or padding only.
    #[error("the torrent has no files")]
    NoFiles,
    /// A name that cannot be stored safely.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// Another info dictionary than the one that was asked for.
    #[error("the metadata does not have the info hash that was asked for")]
    WrongHash,
}

/// A path in a torrent, and why it is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the torrent is refused, because {problem}: {path}")]
pub struct InvalidPath {
    /// As the torrent spells it, control characters escaped and long ones truncated.
    pub path: String,
    /// Why.
    pub problem: PathProblem,
}

/// What is wrong with a path. Its text follows "because".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathProblem {
    /// No components, or one without a usable character.
    Empty,
    /// `..` or `.`, by itself or between separators.
    Parent,
    /// From the root of a file system, or with the letter of a drive.
    Absolute,
    /// A `/` within a name.
    Separator,
    /// A NUL character.
    Nul,
    /// The name of a device of Windows.
    Reserved,
    /// A symbolic link (BEP 47).
    Link,
    /// More than [`MAX_PATH_BYTES`] bytes or [`MAX_COMPONENTS`] components.
    TooLong,
    /// Two files have this path.
    Duplicate,
    /// Another file differs from it in case only.
    Case,
    /// It is a file and a directory.
    FileAndDirectory,
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a file in it has an empty name"),
            Self::Parent => f.write_str("a file in it would leave its directory"),
            Self::Absolute => f.write_str("a file in it has an absolute path"),
            Self::Separator => f.write_str("a name in it contains a separator of paths"),
            Self::Nul => f.write_str("a name in it contains a NUL character"),
            Self::Reserved => f.write_str("Windows reserves a name in it for a device"),
            Self::Link => f.write_str("a file in it is a symbolic link"),
            Self::TooLong => {
                write!(
                    f,
                    "a path in it is longer than {MAX_PATH_BYTES} bytes or {MAX_COMPONENTS} directories"
                )
            }
            Self::Duplicate => f.write_str("two files in it have the same path"),
            Self::Case => f.write_str("two files in it have paths that differ in case only"),
            Self::FileAndDirectory => f.write_str("a path in it is a file and a directory"),
        }
    }
}
