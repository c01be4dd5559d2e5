//! What an import finds.

use std::{collections::BTreeSet, fmt, io, path::PathBuf};

use protocol::CreateTaskRequest;
use ring::digest::{SHA256, digest};

/// The most downloads of one import. More are a mistake, or an attack on memory.
const MAX_DOWNLOADS: usize = 100_000;

/// A download of another program.
#[derive(Clone)]
pub struct Download {
    /// What it is called in messages. Contains no secret.
    pub title: String,
    /// The task. Of a torrent with a file, without that file.
    pub request: CreateTaskRequest,
    /// The torrent file.
    pub torrent: Option<Vec<u8>>,
    /// What makes it the same download when it is imported again.
    pub(crate) key: Vec<u8>,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("title", &self.title)
            .finish_non_exhaustive()
    }
}

impl Download {
    /// An id that is the same whenever the same download is imported, as a UUID (version 8, RFC 9562).
    pub fn task_id(&self) -> String {
        let hash = digest(&SHA256, &self.key);
        let mut bytes: [u8; 16] = std::array::from_fn(|index| hash.as_ref()[index]);
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = data_encoding::HEXLOWER.encode(&bytes);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        parts.join("-")
    }
}

/// A download that cannot be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What it is called.
    pub title: String,
    /// Why not.
    pub reason: String,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Found {
    /// Downloads, in the order of the other program.
    pub downloads: Vec<Download>,
    /// Those that cannot be taken over.
    pub refused: Vec<Refused>,
    /// What is different here, for people.
    pub notes: BTreeSet<String>,
}

impl Found {
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.insert(text.into());
    }

    pub(crate) fn refuse(&mut self, title: impl Into<String>, reason: impl Into<String>) {
        self.refused.push(Refused {
            title: title.into(),
            reason: reason.into(),
        });
    }

    pub(crate) fn add(&mut self, download: Download) -> Result<(), ImportError> {
        if self.downloads.len() >= MAX_DOWNLOADS {
            return Err(ImportError::TooMany);
        }
        self.downloads.push(download);
        Ok(())
    }
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or directory cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than any of its kind.
    #[error("{path} has more than {limit} bytes, which no such file has")]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// In bytes.
        limit: u64,
    },
    /// It is not what it should be.
    #[error("{path} is {what}")]
    Unexpected {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// None of the places is there where the program keeps its downloads.
    #[error("{program} keeps no downloads in {places}; name the directory")]
    Nowhere {
        /// The program.
        program: &'static str,
        /// Where it was looked for.
        places: String,
    },
    /// A database cannot be read.
    #[error("cannot read {path}: {source}; end the program that it belongs to, and try again")]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// There are too many downloads.
    #[error("there are more than {MAX_DOWNLOADS} downloads; import a part of them")]
    TooMany,
}
