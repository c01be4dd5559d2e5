//! Why an archive is not unpacked.

use std::{fmt, io};

use serde::{Deserialize, Serialize};
use transfer::ByteCount;

/// The longest part of a name or message that a refusal repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 300;

/// An archive that is not unpacked: the entry (if it is about one) and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The entry's name as the archive has it, without control characters, shortened.
    pub entry: Option<String>,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with an archive or an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[expect(missing_docs, reason = "the message of each says what it is")]
pub enum Reason {
    #[error("is an absolute path")]
    Absolute,
    #[error("leads out of its directory with `..`")]
    ParentDirectory,
    #[error("begins with a drive letter")]
    DriveLetter,
    #[error("is a path of another machine")]
    NetworkPath,
    #[error("has a control character in its name")]
    ControlCharacter,
    #[error("is the name of a device on Windows")]
    DeviceName,
    #[error("has no name")]
    NoName,
    #[error("has a name that is no text in a known encoding")]
    NameEncoding,
    #[error("is {depth} directories deep; the limit is {limit}")]
    TooDeep { depth: usize, limit: usize },
    #[error("has a name of {bytes} bytes; the limit is {limit}")]
    NameTooLong { bytes: usize, limit: usize },
    #[error("has a path of {bytes} bytes; the limit is {limit}")]
    PathTooLong { bytes: usize, limit: usize },
    #[error("is there twice, perhaps in another case")]
    Duplicate,
    #[error("is a file and a directory")]
    FileAndDirectory,
    #[error("is a symbolic link; links are not unpacked")]
    SymbolicLink,
    #[error("is a hard link; links are not unpacked")]
    HardLink,
    #[error("is a device, pipe or socket")]
    SpecialFile,
    #[error("is a kind of entry that is not unpacked ({what})")]
    Kind { what: String },
    #[error("is encrypted; a password is needed")]
    Encrypted,
    #[error("is encrypted, and none of the passwords is the right one")]
    WrongPassword,
    #[error("is not the {declared} bytes that the archive says")]
    Size { declared: u64 },
    #[error("unpacks to more than {ratio} times its size")]
    Ratio { ratio: u64 },
    #[error("unpacks to more than {}", ByteCount(*limit))]
    TotalSize { limit: u64 },
    #[error("has more than {limit} entries")]
    Entries { limit: usize },
    #[error("shares bytes of the archive with another entry")]
    Overlap,
    #[error("is described differently in two places of the archive ({what})")]
    Mismatch { what: String },
    #[error("is packed with {method}, which is not supported")]
    Method { method: String },
    #[error("needs more than {} of memory to unpack", ByteCount(*limit))]
    Memory { limit: u64 },
    #[error("goes on after its end, where only zeros may be")]
    AfterEnd,
    #[error("is damaged: {what}")]
    Damaged { what: String },
    #[error("does not have the checksum that the archive says")]
    Checksum,
    #[error("is no archive of a known format (zip, tar, 7z, rar)")]
    UnknownFormat,
    #[error("has a volume too few: {name} is missing")]
    MissingVolume { name: String },
    #[error("has more than {limit} volumes")]
    Volumes { limit: usize },
    #[error("was replaced or written to while it was unpacked")]
    Replaced,
    #[error("cannot be read: {message}")]
    Read { message: String },
    #[error("cannot be written: {message}")]
    Write { message: String },
    #[error("the disk is full")]
    DiskFull,
}

/// The result of everything that reads an archive.
pub(crate) type Result<T> = std::result::Result<T, Refusal>;

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "{entry:?} in the archive {}", self.reason),
            None => write!(f, "the archive {}", self.reason),
        }
    }
}

impl Reason {
    /// This reason, about the archive as such.
    pub(crate) fn of_archive(self) -> Refusal {
        Refusal {
            entry: None,
            reason: self,
        }
    }

    /// This reason, about the entry that the archive calls `name`.
    pub(crate) fn of(self, name: &str) -> Refusal {
        Refusal {
            entry: Some(shown(name)),
            reason: self,
        }
    }

    /// The archive contradicts its format; `what` says where.
    pub(crate) fn damaged(what: impl fmt::Display) -> Self {
        Self::Damaged {
            what: shown(&what.to_string()),
        }
    }

    /// A failed read of the archive's file.
    pub(crate) fn read(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::damaged("it ends too early"),
            _ => Self::Read {
                message: shown(&error.to_string()),
            },
        }
    }

    /// A failed action in the directory that is unpacked into.
    pub(crate) fn write(error: &io::Error) -> Self {
        match error.kind() {
            // Names are checked before; this file system finds more of them equal.
            io::ErrorKind::AlreadyExists => Self::Duplicate,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Write {
                message: shown(&error.to_string()),
            },
        }
    }

    /// Whether another password could help.
    pub(crate) fn is_about_password(&self) -> bool {
        matches!(self, Self::Encrypted | Self::WrongPassword)
    }

    /// Whether a wrong password can look like this: what it decrypts to is noise.
    pub(crate) fn may_be_noise(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. } | Self::Checksum | Self::Size { .. } | Self::Method { .. } | Self::Memory { .. }
        )
    }
}

/// `text` without control characters, shortened.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if shown.len() >= MAX_SHOWN_BYTES {
            shown.push('…');
            break;
        }
        shown.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    shown
}
