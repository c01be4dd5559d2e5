//! The file names of a source. Every name contains a number, and the content never changes; the exception is
//! [`TIMESTAMP_SIGNATURE`], which identifies the newest numbers.

use crate::{Identity, Role};

/// The only file that is ever replaced.
pub const TIMESTAMP_SIGNATURE: &str = "timestamp.minisig";

/// A file of `role`.
pub fn document(role: Role, seq: u64) -> String {
    format!("{role}.{seq}.json")
}

/// The signatures of a file.
pub fn signatures(role: Role, seq: u64) -> String {
    match role {
        Role::Timestamp => TIMESTAMP_SIGNATURE.to_owned(),
        Role::Root | Role::Index | Role::Revocations => format!("{}.minisig", document(role, seq)),
    }
}

/// The folder of the patches.
pub const DIFFS: &str = "diff";

/// The patch from one index to another.
pub fn diff(from: u64, to: u64) -> String {
    format!("{DIFFS}/{from}-{to}.json")
}

/// The number of the index that results from a patch with this file name.
pub fn diff_target(name: &str) -> Option<u64> {
    name.strip_suffix(".json")?.split_once('-')?.1.parse().ok()
}

/// A package.
pub fn package(identity: &Identity, version: &semver::Version) -> String {
    format!("packages/{identity}-{version}.zip")
}
