//! Tasks: how they are asked for, and what is told of them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::record::thunder;

/// What is asked for when a task is made. Only `url` must be there.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of one request")]
pub struct CreateTaskRequest {
    /// The source.
    #[schema(required, example = "https://example.com/file.zip")]
    #[serde(deserialize_with = "thunder::deserialize")]
    pub url: String,
    /// Further sources of the same bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
    /// The file's name; empty takes it from the server or the URL.
    pub file_name: String,
    /// The directory; empty is the queue's or the default one.
    pub save_dir: String,
    /// Segments; 0 is automatic.
    pub segments: i64,
    /// A `Cookie` value.
    pub cookies: String,
    /// The `Referer`.
    pub referrer: String,
    /// The `User-Agent`; empty is the queue's or the global one.
    pub user_agent: String,
    /// The proxy; empty is the global one.
    pub proxy_url: String,
    /// The queue; empty is the default one.
    pub queue_id: String,
    /// `algo=hex`; empty is none.
    pub checksum: String,
    /// The media type that the source was linked as; a web page instead of it fails the download. Empty is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// Accept any certificate.
    pub ignore_tls_errors: bool,
    /// Extra request headers.
    pub headers: Option<BTreeMap<String, String>>,
    /// A torrent file in base64.
    pub torrent_b64: Option<String>,
    /// The method; none is GET.
    pub method: Option<String>,
    /// The body of the request.
    pub body: Option<RequestBody>,
    /// A separate audio track.
    pub audio_url: Option<String>,
    /// Stored paused; the queue or the user starts it.
    pub start_paused: bool,
    /// HTTP Basic user; empty is none.
    pub http_user: String,
    /// HTTP Basic password.
    pub http_password: String,
    /// Store the pair for this site.
    pub save_site_auth: bool,
    /// Bytes per second at most; 0 is no limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub speed_limit_bytes: u64,
    /// `rename`, `overwrite` or `skip` if the name is taken; empty is the setting.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file_exists_behavior: String,
    /// Connections of a run at most, 1 to 128; none is the setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u16>,
    /// A segment is never split finer than this; none is the usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_split_bytes: Option<u64>,
    /// Failed attempts in a row, without progress between them, before the task fails for good; 0 never gives up, none is
    /// the usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tries: Option<u32>,
    /// Seconds between two attempts at least; none is the usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_wait_secs: Option<u32>,
    /// Give the file the server's time; none is the setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_server_time: Option<bool>,
}

impl fmt::Debug for CreateTaskRequest {
    /// Almost every field may hold a secret, the URL's query included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CreateTaskRequest(***)")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A request's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind")]
pub enum RequestBody {
    /// `multipart/form-data` fields, each with its values.
    #[serde(rename = "formData")]
    FormData {
        /// The fields.
        fields: BTreeMap<String, Vec<String>>,
    },
    /// `application/x-www-form-urlencoded`, already encoded.
    #[serde(rename = "urlencoded")]
    UrlEncoded {
        /// The text.
        raw: String,
    },
    /// Bytes.
    #[serde(rename = "raw", rename_all = "camelCase")]
    Raw {
        /// The bytes in base64.
        bytes_b64: String,
        /// Their media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_type: Option<String>,
    },
}

/// A task's state, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum TaskStatus {
    /// Waits for its turn.
    #[default]
    Pending = 0,
    /// Moves bytes.
    Downloading = 1,
    /// Stands still.
    Paused = 2,
    /// Has its file.
    Completed = 3,
    /// Gave up.
    Error = 4,
    /// Finds out what the source is.
    Preparing = 5,
}

impl TaskStatus {
    /// Every status, by number.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Downloading,
        Self::Paused,
        Self::Completed,
        Self::Error,
        Self::Preparing,
    ];

    /// The name that filters take.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Downloading => "downloading",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Preparing => "preparing",
        }
    }

    /// Whether it waits or runs.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Downloading | Self::Preparing)
    }
}

impl Serialize for TaskStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for TaskStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(deserializer)?;
        Self::ALL
            .get(usize::from(number))
            .copied()
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Unsigned(number.into()), &"a status from 0 to 5"))
    }
}

/// A task as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskDto {
    /// Its id.
    pub task_id: String,
    /// Its source.
    pub url: String,
    /// Further sources of the same bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
    /// Its file's name, as far as known.
    pub file_name: String,
    /// Its file's directory.
    pub save_dir: String,
    /// Its state: 0 pending, 1 downloading, 2 paused, 3 completed, 4 error, 5 preparing.
    #[schema(value_type = u8)]
    pub status: TaskStatus,
    /// Bytes of the file on disk.
    pub downloaded_bytes: u64,
    /// The file's size; 0 is unknown.
    pub total_bytes: u64,
    /// Why it failed, or what it waits out; else empty.
    pub error_message: String,
    /// The same as a stable name in kebab-case; else empty.
    pub error_kind: String,
    /// When it was made: Unix seconds.
    pub created_at: String,
    /// Its own proxy; empty is the global one. Without user and password.
    pub proxy_url: String,
    /// Its queue.
    pub queue_id: String,
    /// `algo=hex`; empty is none.
    pub checksum: String,
    /// Accepts any certificate.
    pub ignore_tls_errors: bool,
    /// Its finished file was not there when last looked.
    pub file_missing: bool,
    /// When it was completed: Unix seconds; empty is not yet.
    pub completed_at: String,
    /// The `Referer`.
    pub referrer: String,
    /// Its group; empty is none.
    pub group_id: String,
    /// The feed it came from; empty is none.
    pub rss_source_id: String,
    /// The browser extension that made it without an access key, as its `Origin`; empty is anybody else.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// What to show as its source; empty is `url`.
    pub origin_url: String,
    /// Which route it took.
    pub auto_route: String,
    /// Its place in its queue; 0 is by age.
    pub queue_order: u32,
    /// Bytes sent.
    pub uploaded_bytes: u64,
    /// Bytes sent when it was completed.
    pub uploaded_at_completion: u64,
    /// 0 is not seeding.
    pub seeding_status: u8,
    /// More about it.
    pub seeding_message: String,
    /// How long it was seeded.
    pub seeding_time_secs: u64,
    /// -2 is the global limit.
    pub seed_ratio_limit_milli: i64,
    /// -2 is the global limit.
    pub seed_post_ratio_limit_milli: i64,
    /// -2 is the global limit.
    pub seed_time_limit_minutes: i64,
    /// -2 is the global limit.
    pub seed_inactive_time_limit_minutes: i64,
}

/// How a run is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskRuntimeDto {
    /// Whose run.
    pub task_id: String,
    /// When it was sampled: Unix milliseconds.
    pub sampled_at_ms: i64,
    /// Grows with every sample of this daemon.
    pub sample_sequence: u64,
    /// Connections in use.
    pub active_transfers: Option<u32>,
    /// Peers connected.
    pub connected_peers: Option<u32>,
    /// The most connections it may use.
    pub parallelism_limit: Option<u32>,
    /// Bytes of the file on disk.
    pub downloaded_bytes: u64,
    /// The file's size; 0 is unknown.
    pub total_bytes: u64,
    /// Receiving rate, smoothed.
    pub download_bps: u64,
    /// Sending rate, smoothed.
    pub upload_bps: u64,
    /// The segments, in order; empty for one stream.
    pub segments: Vec<SegmentDto>,
}

/// One byte range of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SegmentDto {
    /// Its place.
    pub index: u32,
    /// First byte.
    pub start_byte: u64,
    /// Last byte.
    pub end_byte: u64,
    /// Bytes of it on disk.
    pub downloaded_bytes: u64,
    /// Whether a connection fills it now.
    pub active: Option<bool>,
}

/// Names a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskIdParams {
    /// The task.
    #[serde(rename = "taskId", alias = "id")]
    pub task_id: String,
}

/// Names tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskIdsParams {
    /// The tasks.
    #[serde(rename = "taskIds", alias = "ids")]
    pub task_ids: Vec<String>,
}

/// Params of `daemon.task.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteTaskParams {
    /// The task.
    #[serde(rename = "taskId", alias = "id")]
    pub task_id: String,
    /// Delete the finished file too, if the task made it.
    #[serde(rename = "deleteFiles", default)]
    pub delete_files: bool,
}

/// Params of `daemon.task.deleteMany`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteTasksParams {
    /// The tasks.
    #[serde(rename = "taskIds", alias = "ids")]
    pub task_ids: Vec<String>,
    /// Delete the finished files too, if the tasks made them.
    #[serde(rename = "deleteFiles", default)]
    pub delete_files: bool,
}

/// Params of `daemon.task.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTaskParams {
    /// What is asked for.
    pub request: CreateTaskRequest,
    /// A torrent file that was uploaded before; excludes `request.torrentB64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torrent_blob_id: Option<String>,
    /// Nobody is there to answer questions.
    #[serde(default)]
    pub unattended: bool,
    /// The size somebody promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_file_size: Option<i64>,
    /// The id the task shall have; a UUID. With one, the same call again is a `conflict` and not a second task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Who gave the URLs, if it was not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger: Option<Stranger>,
}

/// Somebody else than the user, a web page for example. URLs of theirs lead to public addresses, and to one host more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stranger {
    /// The host that the user gave on the way to the URLs; empty is none. Nothing that the stranger sends sets it.
    pub user_host: String,
    /// The browser extension that made the task without an access key, as its `Origin`; empty is none. It may see and
    /// change the task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_by: String,
}

/// Params of `daemon.task.createMany`: all or none are made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTasksParams {
    /// What is asked for, in order.
    pub requests: Vec<CreateTaskRequest>,
    /// Who gave the URLs, if it was not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger: Option<Stranger>,
}

/// Result of `daemon.task.create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTask {
    /// The task.
    pub task_id: String,
    /// What its user should know, for people: that a plugin waits which would know the URL. Empty if there is nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Result of `daemon.task.createMany`, in the order of the requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTasks {
    /// The tasks.
    pub task_ids: Vec<String>,
    /// What their user should know, as in [`CreatedTask`]; each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// Params of `daemon.task.rename`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameTaskParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// The new name, without separators.
    pub file_name: String,
}

/// Params of `daemon.task.changeUrl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeUrlParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// The new source.
    #[serde(deserialize_with = "thunder::deserialize")]
    pub url: String,
}

/// What `daemon.task.changeUrl` and `daemon.task.change` answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedTask {
    /// Always true: what failed is an error.
    pub ok: bool,
    /// What the user is to know: secrets of the URL before were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// Params of `daemon.task.change`: what of a task's request becomes something else.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeTaskParams {
    /// The task; it is not completed.
    pub task_id: String,
    /// Fields of a [`CreateTaskRequest`], and what they become.
    pub change: serde_json::Map<String, serde_json::Value>,
}

impl fmt::Debug for ChangeTaskParams {
    /// As of a request, almost every field may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeTaskParams")
            .field("task_id", &self.task_id)
            .finish_non_exhaustive()
    }
}

/// Params of `daemon.task.setSpeedLimit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpeedLimitParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// Bytes per second; 0 is no limit.
    pub speed_limit_bytes: u64,
}

/// Params of `daemon.task.activity`. The newest page by default; the two cursors exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// Only entries older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_id: Option<i64>,
    /// Only entries newer than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_id: Option<i64>,
    /// At most this many, 1 to 200; 50 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityEntry {
    /// Grows.
    pub id: i64,
    /// The task.
    pub task_id: String,
    /// When: Unix milliseconds.
    pub timestamp_ms: i64,
    /// `status`, `notice`, `retry` or `skipped`; newer kinds may follow.
    pub kind: String,
    /// What people read.
    pub message: String,
    /// The task's state then, if it changed.
    pub status: Option<TaskStatus>,
}

/// A page of a task's history, oldest entry first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityPage {
    /// The entries.
    pub items: Vec<ActivityEntry>,
    /// Whether there are more in the direction that was asked for.
    pub has_more: bool,
}

/// Names a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupIdParams {
    /// The group.
    #[serde(rename = "groupId", alias = "id")]
    pub group_id: String,
}

/// Params of `daemon.group.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDeleteParams {
    /// The group.
    #[serde(rename = "groupId", alias = "id")]
    pub group_id: String,
    /// Delete the finished files too, if the tasks made them.
    #[serde(rename = "deleteFiles", default)]
    pub delete_files: bool,
}

/// Result of `POST /blobs/{kind}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobResult {
    /// Names the bytes, once, for a few minutes.
    pub blob_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_url_must_be_sent() {
        let request: CreateTaskRequest = serde_json::from_str(r#"{"url":"http://a.test/f","new":1}"#).unwrap();
        assert_eq!(
            request,
            CreateTaskRequest {
                url: "http://a.test/f".into(),
                ..CreateTaskRequest::default()
            }
        );
    }

    #[test]
    fn a_status_is_its_number() {
        for (number, status) in TaskStatus::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_string(&status).unwrap(), number.to_string());
            assert_eq!(serde_json::from_str::<TaskStatus>(&number.to_string()).unwrap(), status);
        }
        assert!(serde_json::from_str::<TaskStatus>("6").is_err());
    }

    #[test]
    fn a_body_says_its_kind() {
        let read = |text: &str| serde_json::from_str::<RequestBody>(text).unwrap();
        assert_eq!(
            read(r#"{"kind":"raw","bytesB64":"AA==","contentType":"a/b"}"#),
            RequestBody::Raw {
                bytes_b64: "AA==".into(),
                content_type: Some("a/b".into())
            }
        );
        assert_eq!(
            read(r#"{"kind":"urlencoded","raw":"a=b"}"#),
            RequestBody::UrlEncoded { raw: "a=b".into() }
        );
        let fields = BTreeMap::from([("a".to_owned(), vec!["1".to_owned()])]);
        assert_eq!(
            read(r#"{"kind":"formData","fields":{"a":["1"]}}"#),
            RequestBody::FormData { fields }
        );
    }

    #[test]
    fn an_id_has_two_names() {
        let read = |text: &str| serde_json::from_str::<DeleteTaskParams>(text).unwrap();
        assert_eq!(read(r#"{"id":"t"}"#), read(r#"{"taskId":"t","deleteFiles":false}"#));
    }
}
