//! What becomes of the files of deleted tasks.

/// Whether deleting a task deletes its finished file. Its part file is always deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileFate {
    /// Keep it.
    #[default]
    Keep,
    /// Delete it, if the task created it.
    Delete,
}
