//! Which files of a source are the newest.

use jiff::Timestamp as Time;

use crate::{
    Digest, MAX_INDEX_BYTES, MAX_REVOCATIONS_BYTES,
    format::record::{FileRecord, TimestampRecord},
};

/// Which files of a source are the newest.
#[derive(Debug, Clone)]
pub(crate) struct Timestamp {
    pub(crate) seq: u64,
    pub(crate) issued: Time,
    pub(crate) expires: Time,
    pub(crate) root_seq: u64,
    pub(crate) index: File,
    pub(crate) revocations: File,
}

/// A file that has exactly these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its number.
    pub seq: u64,
    /// Its digest.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
}

impl TryFrom<TimestampRecord> for Timestamp {
    type Error = String;

    fn try_from(record: TimestampRecord) -> Result<Self, String> {
        Ok(Self {
            seq: record.seq,
            issued: record.issued,
            expires: record.expires,
            root_seq: record.root.seq,
            index: file("index", &record.index, MAX_INDEX_BYTES)?,
            revocations: file("revocations", &record.revocations, MAX_REVOCATIONS_BYTES)?,
        })
    }
}

fn file(what: &str, record: &FileRecord, limit: u64) -> Result<File, String> {
    if record.size > limit {
        return Err(format!("{what} of {} bytes; the limit is {limit}", record.size));
    }
    Ok(File {
        seq: record.seq,
        sha256: record.sha256,
        size: record.size,
    })
}
