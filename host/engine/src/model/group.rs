//! Groups: a label over tasks that were made together.

use std::path::PathBuf;

use crate::model::id::{GroupId, Timestamp};

/// What a user sets of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// Where its tasks came from; may be empty.
    pub source_url: String,
    /// The directory of its tasks without one of their own.
    pub save_dir: Option<PathBuf>,
}

/// A group. It is deleted with its last task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name for programs.
    pub id: GroupId,
    /// What the user set.
    pub spec: GroupSpec,
    /// When it was created.
    pub created_at: Timestamp,
}
