//! What follows a finished download: steps, the jobs that take them, and the passwords of archives.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum PostStep {
    /// Unpacks an archive, with all of its volumes, into a new directory.
    Unpack {
        /// Whether the archive is deleted when its content is there and verified.
        #[serde(default)]
        delete_archive: bool,
        /// The directory that the new one is made in; empty: that of the archive.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        into: String,
    },
    /// Moves each file after a template, relative to the task's directory.
    Rename {
        /// With `{name}`, `{extension}`, `{title}`, `{host}` and `{date}`.
        template: String,
    },
    /// Writes a checksum file beside each file.
    Checksum {
        /// `sha-256`, `sha-512`, `sha-1`, `md5`, `crc32` or `blake3`.
        algorithms: Vec<String>,
    },
    /// Joins the two files of a group, a picture track and a sound track, with the user's ffmpeg.
    Mux {
        /// The container.
        container: PostContainer,
    },
    /// Puts the tracks of a file into another container, with the user's ffmpeg.
    Remux {
        /// The container.
        container: PostContainer,
    },
    /// Calls a plugin.
    Plugin {
        /// The plugin.
        identity: String,
    },
}

/// A container of audio and video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum PostContainer {
    Mp4,
    Matroska,
    WebM,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum PostState {
    /// For its turn.
    #[default]
    Waiting,
    /// A step runs.
    Running,
    /// All steps were done.
    Done,
    /// A step failed. What it worked on is as it was.
    Failed,
    /// By the user.
    Cancelled,
}

/// A chain at work on the files of a task or group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PostJobDto {
    /// Its number.
    pub job_id: u64,
    /// The task whose end began it.
    pub task_id: String,
    /// Its group, if the job works on the files of the whole group.
    pub group_id: String,
    /// What the current step works on; of a job that is done, its results.
    pub files: Vec<String>,
    /// All steps.
    pub steps: Vec<PostStep>,
    /// The index of the current one.
    pub step: u32,
    /// Where it is.
    pub state: PostState,
    /// How far the current step is, in thousandths, if that is known.
    pub progress: Option<u16>,
    /// Why it failed, which files it waits for, or what of its work was left undone.
    pub message: String,
    /// When it was created, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// Result of `daemon.post.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PostJobs {
    /// All jobs, newest first.
    pub jobs: Vec<PostJobDto>,
    /// How many passwords are known for archives.
    pub passwords: u32,
}

/// Params of `daemon.post.start`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PostStartRequest {
    /// A finished task; of an archive in several files, any of them.
    pub task_id: String,
    /// Instead of a task: all files of a group, whose tasks are all finished.
    pub group_id: String,
    /// The steps; none: as configured for the task's queue.
    pub steps: Vec<PostStep>,
    /// Passwords for this archive, tried before those that the service knows.
    pub passwords: Vec<String>,
}

impl fmt::Debug for PostStartRequest {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostStartRequest")
            .field("task_id", &self.task_id)
            .field("group_id", &self.group_id)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Result of `daemon.post.start`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostStarted {
    /// The new job.
    pub job_id: u64,
}

/// Names a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostJobParams {
    /// The job.
    pub job_id: u64,
}

/// Result of `daemon.post.clear`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostCleared {
    /// Jobs that were forgotten.
    pub count: u32,
}

/// Params of `daemon.post.setPasswords`: replaces all.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PostPasswords {
    /// Tried in this order on archives that are encrypted; at most 100.
    pub passwords: Vec<String>,
}

impl fmt::Debug for PostPasswords {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostPasswords({})", self.passwords.len())
    }
}
