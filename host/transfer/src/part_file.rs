//! The part file: where a download's bytes go until they are the file.
//!
//! It lies beside its target as `<name>.svcpart`, is locked while somebody works on it, and has a journal
//! (`<name>.svcpart.journal`) that says which bytes are there. A name belongs to whoever created its part file anew;
//! the target itself appears at once and whole, by a rename, when the bytes are proved and on the disk. Both acts are
//! announced before they are done, so that whoever keeps records has them there in time.

mod claim;
mod file;
mod finish;
mod journal;
mod names;
#[cfg(test)]
mod tests;

pub use crate::file_name::{JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX, PART_SUFFIX};
pub use claim::{Claim, Claimed, OnConflict, Recorded};
pub use file::PartFile;
pub use finish::{Landing, sync_directory};
pub use journal::{Begun, Mark, Origin};
