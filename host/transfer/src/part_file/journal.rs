//! The journal beside a part file: which of its bytes are valid, so that a killed run can resume.
//!
//! A header names the source, then records follow, each with its own checksum, only ever appended. Records of written
//! ranges are not synced one by one: they survive a kill, because the page cache outlives a process, and count only
//! within the same boot of the machine. Periodically the part file is synced and a `Synced` record says which records
//! before it are on disk; after a power failure only those count.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    os,
    range_set::{ByteRange, RangeSet},
    source::{safe_url::SafeUrl, validator},
};

/// First bytes of a journal; the digit is the format's version.
const MAGIC: &[u8; 6] = b"SVCJ1\n";

/// The longest header read. It holds a digest, two validators and two numbers.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The longest journal read: about three million records, far past what [`COMPACT_BYTES`] lets a run write.
const MAX_JOURNAL_BYTES: u64 = 64 * 1024 * 1024;

/// A journal longer than this is rewritten at the next sync.
const COMPACT_BYTES: u64 = 1024 * 1024;

/// Length of a record: kind, two numbers, checksum.
const RECORD_BYTES: usize = 1 + 8 + 8 + 4;

/// What a part file is a part of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// SHA-256 of the source's first URL, in hexadecimal: identifies a source without storing a URL that may be secret.
    pub source: String,
    /// The file's size in bytes, once known.
    pub total_bytes: Option<u64>,
    /// The file's strong entity tag, as sent.
    pub etag: Option<String>,
    /// The file's modification time, as sent.
    pub last_modified: Option<String>,
    /// The bytes are a file that the user had before, of this length: it is given back instead of being emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent_bytes: Option<u64>,
}

impl Origin {
    /// A file at `url` without further facts.
    pub fn at(url: &SafeUrl) -> Self {
        Self {
            source: HEXLOWER.encode(&Sha256::digest(url.expose())),
            ..Self::default()
        }
    }
}

/// The progress of a file that is joined from segments in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Every byte before this position is valid.
    pub end: u64,
    /// Identifies the complete segments that these bytes consist of.
    pub segments: u64,
}

/// The valid content of an earlier run's part file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// What the bytes are a part of.
    pub origin: Origin,
    /// The valid bytes.
    pub done: RangeSet,
    /// The last mark of a joined file, if its bytes are valid.
    pub mark: Option<Mark>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    origin: Origin,
    boot: Option<String>,
}

impl Header {
    /// Whether we could have written it: we only record validated values.
    fn is_plausible(&self) -> bool {
        let origin = &self.origin;
        let texts = [
            Some(&origin.source),
            origin.etag.as_ref(),
            origin.last_modified.as_ref(),
            self.boot.as_ref(),
        ];
        texts.into_iter().flatten().all(|text| validator::is_comparable(text))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    /// The bytes of this range are in the part file.
    Written(ByteRange),
    /// The bytes of all records before this position of the journal are on disk.
    Synced(u64),
    /// The bytes of this range are invalid.
    Dropped(ByteRange),
    /// The progress of a joined file.
    Joined(Mark),
}

impl Record {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let (kind, one, other) = match self {
            Self::Written(range) => (1, range.start, range.end),
            Self::Synced(position) => (2, position, 0),
            Self::Dropped(range) => (4, range.start, range.end),
            Self::Joined(mark) => (5, mark.end, mark.segments),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = kind;
        bytes[1..9].copy_from_slice(&u64::to_le_bytes(one));
        bytes[9..17].copy_from_slice(&u64::to_le_bytes(other));
        let sum = crc32fast::hash(&bytes[..17]);
        bytes[17..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if crc32fast::hash(&bytes[..17]).to_le_bytes() != bytes[17..] {
            return None;
        }
        let (one, other) = (number(1), number(9));
        match bytes[0] {
            1 if one < other => Some(Self::Written(ByteRange::new(one, other))),
            2 => Some(Self::Synced(one)),
            4 if one < other => Some(Self::Dropped(ByteRange::new(one, other))),
            5 => Some(Self::Joined(Mark {
                end: one,
                segments: other,
            })),
            _ => None,
        }
    }
}

/// An open journal, positioned at its end.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    length: u64,
}

impl Journal {
    /// Writes a new journal in place of any old one, atomically. `done` must already be synced.
    pub(crate) fn create(path: &Path, origin: &Origin, done: &RangeSet) -> io::Result<Self> {
        Self::create_with(path, origin, done.iter().map(Record::Written))
    }

    /// [`Journal::create`], for a joined file with the progress `mark`.
    pub(crate) fn create_joined(path: &Path, origin: &Origin, mark: Mark) -> io::Result<Self> {
        Self::create_with(path, origin, std::iter::once(Record::Joined(mark)))
    }

    fn create_with(path: &Path, origin: &Origin, synced: impl Iterator<Item = Record>) -> io::Result<Self> {
        let header = Header {
            origin: origin.clone(),
            boot: os::boot_id(),
        };
        let json = serde_json::to_vec(&header)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(u32::try_from(json.len()).map_err(io::Error::other)?.to_le_bytes());
        bytes.extend(crc32fast::hash(&json).to_le_bytes());
        bytes.extend(json);
        let start = bytes.len();
        bytes.extend(synced.flat_map(Record::encode));
        let is_empty = bytes.len() == start;
        bytes.extend(Record::Synced(bytes.len() as u64).encode());
        let temporary = path.with_extension("journal-new");
        let mut file = private_file(&temporary)?;
        file.write_all(&bytes)?;
        if !is_empty {
            file.sync_data()?;
        }
        std::fs::rename(&temporary, path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            length: bytes.len() as u64,
        })
    }

    /// Reads the journal at `path` and opens it for appending; `None` if there is no trustworthy one. `accepts` says
    /// whether a file with this metadata may be ours.
    pub(crate) fn open(path: &Path, accepts: impl Fn(&Metadata) -> bool) -> io::Result<Option<(Self, Begun)>> {
        match std::fs::symlink_metadata(path) {
            Ok(metadata) if !accepts(&metadata) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let file = os::open_in_place(OpenOptions::new().read(true).append(true), path)?;
        // Another file may have replaced it since.
        if !accepts(&file.metadata()?) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_JOURNAL_BYTES).read_to_end(&mut bytes)?;
        let Some((begun, length)) = parse(&bytes, os::boot_id().as_deref()) else {
            return Ok(None);
        };
        // Truncate a torn record: it would hide everything appended after it.
        file.set_len(length)?;
        Ok(Some((
            Self {
                file,
                path: path.to_owned(),
                length,
            },
            begun,
        )))
    }

    pub(crate) fn written(&mut self, range: ByteRange) -> io::Result<()> {
        self.append(Record::Written(range))
    }

    pub(crate) fn joined(&mut self, mark: Mark) -> io::Result<()> {
        self.append(Record::Joined(mark))
    }

    /// Synced before this returns: a power failure must not revive bytes that are known to be wrong.
    pub(crate) fn dropped(&mut self, range: ByteRange) -> io::Result<()> {
        self.append(Record::Dropped(range))?;
        self.file.sync_data()
    }

    /// Marks what a sync that begins now covers; record it with [`Checkpoint::commit`].
    pub(crate) fn checkpoint(&mut self) -> io::Result<Checkpoint> {
        let checkpoint = Checkpoint {
            file: self.file.try_clone()?,
            position: self.length,
        };
        self.length += RECORD_BYTES as u64;
        Ok(checkpoint)
    }

    /// Whether the journal is longer than [`COMPACT_BYTES`].
    pub(crate) fn is_long(&self) -> bool {
        self.length > COMPACT_BYTES
    }

    pub(crate) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    fn append(&mut self, record: Record) -> io::Result<()> {
        self.file.write_all(&record.encode())?;
        self.length += RECORD_BYTES as u64;
        Ok(())
    }
}

/// A sync in progress, and the journal position that it covers.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    file: File,
    position: u64,
}

impl Checkpoint {
    /// Records, durably, that the part file was synced. Appends, so it may run while records are appended elsewhere.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.file.write_all(&Record::Synced(self.position).encode())?;
        self.file.sync_data()
    }
}

/// A new file that only we can read, replacing any left by a crash.
fn private_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Parses a journal for a reader in `boot`. Also returns the length of its valid part.
fn parse(bytes: &[u8], boot: Option<&str>) -> Option<(Begun, u64)> {
    let after_magic = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = after_magic.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length))
        .ok()
        .filter(|length| *length <= MAX_HEADER_BYTES)?;
    let (json, records) = rest.split_at_checked(length)?;
    if crc32fast::hash(json).to_le_bytes() != *sum {
        return None;
    }
    let header: Header = serde_json::from_slice(json).ok().filter(Header::is_plausible)?;
    let records: Vec<Record> = records
        .as_chunks::<RECORD_BYTES>()
        .0
        .iter()
        .map_while(Record::decode)
        .collect();
    let start = (bytes.len() - rest.len() + length) as u64;
    let end = start + (records.len() * RECORD_BYTES) as u64;
    let is_same_boot = boot.is_some() && boot == header.boot.as_deref();
    let synced = records.iter().filter_map(|record| match record {
        Record::Synced(position) => Some(*position),
        _ => None,
    });
    let believed = if is_same_boot { end } else { synced.max().unwrap_or(0) };
    let mut begun = Begun {
        origin: header.origin,
        done: RangeSet::new(),
        mark: None,
    };
    for (record, at) in records.iter().zip((start..).step_by(RECORD_BYTES)) {
        match record {
            Record::Written(range) if at < believed => {
                begun.done.insert(*range);
            }
            Record::Joined(mark) if at < believed => {
                begun.done.insert(ByteRange::new(0, mark.end));
                begun.mark = Some(*mark);
            }
            Record::Dropped(range) => begun.done.remove(*range),
            Record::Written(_) | Record::Joined(_) | Record::Synced(_) => {}
        }
    }
    // Bytes beyond the end of the file cannot be valid.
    let total = begun.origin.total_bytes.unwrap_or(u64::MAX);
    if begun.done.iter().any(|range| range.end > total) {
        return None;
    }
    Some((begun, end))
}

#[cfg(test)]
mod tests;
