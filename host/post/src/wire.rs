//! What the service and the unpacker's process say to each other: one JSON document in, JSON lines out.

use serde::{Deserialize, Serialize};

use crate::{dir::Original, refusal::Refusal};

/// The longest line of the unpacker.
pub(crate) const MAX_LINE_BYTES: u64 = 64 * 1024;

/// The longest job: the paths of all volumes and the passwords.
pub(crate) const MAX_JOB_BYTES: u64 = 4 << 20;

/// The file in the unpacker's working directory that it keeps locked while it lives.
pub(crate) const LOCK: &str = "lock";

/// What is to be unpacked. The working directory of the process is where to.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    /// With absolute paths, in their order.
    pub(crate) volumes: Vec<Original>,
    /// Tried in their order, after none.
    pub(crate) passwords: Vec<String>,
    /// Bytes that may be unpacked.
    pub(crate) max_bytes: u64,
}

/// A line of the unpacker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Line {
    /// Sent every second or so, and before everything is synced.
    Progress {
        files: u64,
        bytes: u64,
        /// How much of the archive was read.
        thousandths: u16,
        is_syncing: bool,
    },
    /// The last line of a success.
    Unpacked {
        files: u64,
        bytes: u64,
        /// The directory with the content, in the working directory.
        payload: String,
        /// The directory that all of the content is in, if there is one.
        only_directory: Option<String>,
    },
    /// The last line of a refusal.
    Refused(Refusal),
}
