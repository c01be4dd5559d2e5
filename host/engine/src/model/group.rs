//! Groups: a label over tasks that were made together.

use std::path::PathBuf;

use crate::model::id::{GroupId, Timestamp};

/// What a user says of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// Where its tasks came from; may be empty.
    pub source_url: String,
    /// Where its tasks go that name no directory.
    pub save_dir: Option<PathBuf>,
}

/// A group. It goes when its last task goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name for programs.
    pub id: GroupId,
    /// What the user said.
    pub spec: GroupSpec,
    /// When it was made.
    pub created_at: Timestamp,
}
