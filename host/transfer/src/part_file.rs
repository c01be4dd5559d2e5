//! The part file: the bytes of a download until it is complete.
//!
//! It lies beside its target as `<name>.svcpart`, is locked while a run writes it, and has a journal
//! (`<name>.svcpart.journal`) that says which bytes are valid. A name is claimed by creating its part file exclusively;
//! the target itself appears complete, by a rename, once the bytes are verified and synced. Both steps are announced
//! before they happen, so that the engine's records are on disk before the files change.

mod claim;
mod file;
mod finish;
mod journal;
mod lent;
mod names;
#[cfg(test)]
mod tests;

pub use crate::file_name::{JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX, PART_SUFFIX};
pub use claim::{Claim, Claimed, OnConflict, Recorded};
pub use file::PartFile;
pub use finish::{Landing, sync_directory};
pub use journal::{Begun, Mark, Origin};
