//! The errors of the engine's commands and start.

use std::path::PathBuf;

use crate::{
    model::id::{GroupId, QueueId, TaskId},
    model::settings::InvalidSetting,
    model::spec::InvalidSpec,
};

/// Why a command was refused. Nothing has changed, except for [`CommandError::NotSaved`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such task.
    #[error("task not found: {0}")]
    UnknownTask(TaskId),
    /// There is no such queue.
    #[error("queue not found: {0}")]
    UnknownQueue(QueueId),
    /// There is no such group.
    #[error("group not found: {0}")]
    UnknownGroup(GroupId),
    /// There are no credentials for the site.
    #[error("no credentials for {0}")]
    UnknownSite(String),
    /// There are no cookies of the site.
    #[error("no cookies of {0}")]
    UnknownCookieSite(String),
    /// More sites than there is room for.
    #[error("cookies of at most {0} sites are kept; remove some first")]
    TooManyCookieSites(usize),
    /// A task with this id exists already.
    #[error("task exists already: {0}")]
    TaskExists(TaskId),
    /// A task with this id existed and was deleted.
    #[error("task was deleted: {0}")]
    TaskDeleted(TaskId),
    /// A task downloads or seeds the same torrent.
    #[error("the torrent is that of task {0}; change that task, or delete it first")]
    SameTorrent(TaskId),
    /// The task's phase does not allow it.
    #[error("cannot {act} a task that is {phase}")]
    WrongPhase {
        /// The refused action.
        act: &'static str,
        /// The task's phase.
        phase: &'static str,
    },
    /// The limit of automatic retries is reached.
    #[error("the task has no automatic retries left")]
    NoRetryLeft,
    /// The task's file is being renamed or deleted right now.
    #[error("the task's file is being renamed or deleted; try again")]
    Busy,
    /// The specification of the task is invalid.
    #[error(transparent)]
    InvalidSpec(#[from] InvalidSpec),
    /// The value of a setting is invalid.
    #[error(transparent)]
    InvalidSetting(#[from] InvalidSetting),
    /// The settings are not at the expected revision.
    #[error("the settings are at revision {revision} now")]
    Conflict {
        /// The present revision.
        revision: u64,
    },
    /// The queue always exists and keeps its name.
    #[error("the built-in queue {0} cannot be renamed or deleted")]
    BuiltInQueue(QueueId),
    /// A field of a queue or a group is out of its range.
    #[error("{0}")]
    InvalidField(&'static str),
    /// The new file name cannot be used.
    #[error("the file name is empty or holds a character that file names cannot hold")]
    InvalidName,
    /// A file of the new name exists.
    #[error("{} exists already", .0.display())]
    TargetExists(PathBuf),
    /// The file cannot be renamed.
    #[error("cannot rename {}: {reason}", path.display())]
    Rename {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The text names no site.
    #[error("a site is scheme://host or scheme://host:port; the user name is not empty and has no colon")]
    InvalidSite,
    /// The text names no site of cookies.
    #[error("a site of cookies is a host name without scheme, port and path")]
    InvalidCookieSite,
    /// The change is effective in memory but could not be saved; saving is retried.
    #[error("the change could not be saved: {0}")]
    NotSaved(String),
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    Closed,
}

/// Why the engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The tasks cannot be read.
    #[error("cannot read the tasks")]
    Read(#[from] store::ReadError),
    /// A row has content that no version writes.
    #[error("the database holds a {what} that cannot be read: {reason}")]
    Row {
        /// What kind of row.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A sealed value cannot be decrypted.
    #[error("cannot open the secrets of {what}")]
    Sealed {
        /// The row that holds it.
        what: String,
        /// Why not.
        #[source]
        source: store::SealError,
    },
    /// Two transports claim one scheme.
    #[error("two transports claim the scheme {0}")]
    Scheme(&'static str),
    /// The download directory cannot be used.
    #[error("the download directory cannot be used: {0}")]
    DownloadDir(InvalidSpec),
}
