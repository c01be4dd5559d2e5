//! Tasks: requests to create them, and their state.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::record::{thunder, torrent::TorrentRequest};

/// The options of a new task. Only `url` is required.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of one request")]
pub struct CreateTaskRequest {
    /// The URL to download.
    #[schema(required, example = "https://example.com/file.zip")]
    #[serde(deserialize_with = "thunder::deserialize")]
    pub url: String,
    /// Further URLs of the same file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
    /// The file name; empty: the server's, else the URL's.
    pub file_name: String,
    /// The directory; empty: the queue's, else the default one.
    pub save_dir: String,
    /// Segments that are downloaded in parallel; 0 chooses automatically.
    pub segments: i64,
    /// The `Cookie` header.
    pub cookies: String,
    /// The `Referer` header.
    pub referrer: String,
    /// The `User-Agent` header; empty: the queue's, else the global one.
    pub user_agent: String,
    /// The proxy's URL, or `direct`; empty: as in the settings.
    pub proxy_url: String,
    /// The id of the queue; empty: the default queue.
    pub queue_id: String,
    /// The expected checksum, as `algorithm=hex`; empty: none.
    pub checksum: String,
    /// The hashes of the file's pieces, as `algorithm=bytes:base64` with the digests one after the other; empty: none. A
    /// piece that does not have its hash is fetched again, from another URL if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub piece_hashes: String,
    /// The size of the file in bytes; a server that has another one is not used. `null`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_size_bytes: Option<u64>,
    /// The media type of the link; a web page instead of it fails the download. Empty: unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// Accept any TLS certificate.
    pub ignore_tls_errors: bool,
    /// Extra request headers.
    pub headers: Option<BTreeMap<String, String>>,
    /// A torrent file in base64. `url` may then be empty and is not used; of a magnet link, the info hash must be the same.
    pub torrent_b64: Option<String>,
    /// A torrent file that was uploaded before with `POST /api/web/blobs/torrents`, in place of `torrentB64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torrent_blob_id: Option<String>,
    /// Whether a link whose answer is a torrent file downloads the torrent, in place of that file; `null`: as in the
    /// settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow_torrent: Option<bool>,
    /// How it is downloaded if it is a torrent; `null`: all of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torrent: Option<TorrentRequest>,
    /// A Metalink document in base64, of at most 700 KiB. Each of its files becomes a task with the other options of this
    /// request, in a directory of its own if the document gives it one; `url`, `mirrors`, `fileName`, `checksum`,
    /// `pieceHashes` and `expectedSizeBytes` are then the document's and must not be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metalink_b64: Option<String>,
    /// The HTTP method; `null`: GET.
    pub method: Option<String>,
    /// The body of the HTTP request.
    pub body: Option<RequestBody>,
    /// The URL of a separate audio track. Not supported by this version.
    pub audio_url: Option<String>,
    /// Create the task paused.
    pub start_paused: bool,
    /// User name for HTTP authentication; empty: none.
    pub http_user: String,
    /// The fingerprint of the key that the SSH server of an `sftp` URL has to have: `SHA256:…`, `sha-1=hex` or `md5=hex`. Empty:
    /// one of the keys in `known_hosts`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_host_key: String,
    /// Password for HTTP authentication.
    pub http_password: String,
    /// Save user name and password for further requests to this site.
    pub save_site_auth: bool,
    /// The speed limit in bytes per second; 0: none.
    #[serde(skip_serializing_if = "is_default")]
    pub speed_limit_bytes: u64,
    /// If the file exists already: `rename`, `overwrite` or `skip`; empty: as in the settings.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file_exists_behavior: String,
    /// The maximum number of connections, 1 to 128; `null`: as in the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u16>,
    /// The smallest segment in bytes; `null`: the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_split_bytes: Option<u64>,
    /// Failed attempts without progress between them after which the task fails; 0: never; `null`: the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tries: Option<u32>,
    /// The minimum number of seconds between two attempts; `null`: the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_wait_secs: Option<u32>,
    /// Set the file's modification time to the server's `Last-Modified`; `null`: as in the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_server_time: Option<bool>,
    /// Close a connection that brings no more bytes per second than this over ten seconds. The task fails with
    /// `too-slow` when none is left; 0: no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub lowest_speed_bytes: u64,
    /// Answers "not found" without a byte of the file after which the task fails with `still-not-found`, counted also
    /// in `maxTries`; 0: it fails at the first.
    #[serde(skip_serializing_if = "is_default")]
    pub max_not_found: u32,
    /// If a file of the name and size is there and `checksum` is given, check that file: a correct one completes the
    /// task, another one is replaced.
    #[serde(skip_serializing_if = "is_default")]
    pub check_integrity: bool,
    /// Use no login of the `.netrc` of the user who runs the service. Without this, each of them goes to its host only,
    /// and only for URLs that the user gave.
    #[serde(skip_serializing_if = "is_default")]
    pub no_netrc: bool,
    /// The upload limit of a torrent in bytes per second; 0: none.
    #[serde(skip_serializing_if = "is_default")]
    pub upload_limit_bytes: u64,
    /// Words of the user by which tasks are found: at most 32, of at most 64 bytes each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Do not seed the finished torrent.
    #[serde(skip_serializing_if = "is_default")]
    pub no_seed: bool,
    /// The ratio of uploaded bytes to the torrent's size, in thousandths, that ends seeding; -1: none; `null`: as in the
    /// settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_ratio_limit_milli: Option<i64>,
    /// Seconds of seeding; -1: no limit; `null`: as in the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_time_limit_secs: Option<i64>,
}

impl fmt::Debug for CreateTaskRequest {
    /// Almost every field may hold a secret, the URL's query included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CreateTaskRequest(***)")
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The body of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind")]
pub enum RequestBody {
    /// `multipart/form-data`.
    #[serde(rename = "formData")]
    FormData {
        /// The values of each field.
        fields: BTreeMap<String, Vec<String>>,
    },
    /// `application/x-www-form-urlencoded`, already encoded.
    #[serde(rename = "urlencoded")]
    UrlEncoded {
        /// The encoded text.
        raw: String,
    },
    /// Arbitrary bytes.
    #[serde(rename = "raw", rename_all = "camelCase")]
    Raw {
        /// The bytes in base64.
        bytes_b64: String,
        /// The `Content-Type`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_type: Option<String>,
    },
}

/// A task's state, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum TaskStatus {
    /// Waits for a slot of its queue, for a retry, or for the limits of its account.
    #[default]
    Pending = 0,
    /// Downloads.
    Downloading = 1,
    /// Paused by a user or its queue.
    Paused = 2,
    /// The file is complete.
    Completed = 3,
    /// Failed; a user can resume it.
    Error = 4,
    /// Resolves or probes the source.
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
    /// The task's id, a UUID.
    pub task_id: String,
    /// The URL, without user name and password.
    pub url: String,
    /// Further URLs of the same file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
    /// The file name; until the server was asked, derived from the URL.
    pub file_name: String,
    /// The directory of the file.
    pub save_dir: String,
    /// 0: pending, 1: downloading, 2: paused, 3: completed, 4: error, 5: preparing.
    #[schema(value_type = u8)]
    pub status: TaskStatus,
    /// Bytes of the file on disk.
    pub downloaded_bytes: u64,
    /// The size of the file in bytes; 0: unknown.
    pub total_bytes: u64,
    /// The info hash of a torrent in hexadecimal digits; absent: it is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub info_hash: String,
    /// Why it failed, which failure it will retry after, or which limit of an account it waits for; else empty.
    pub error_message: String,
    /// The kind of that failure, a stable name in kebab-case; else empty.
    pub error_kind: String,
    /// The login without which its plugin gives no link. It goes on by itself after one; resuming it tries again at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login_need: Option<LoginNeedDto>,
    /// The time of the retry, or at which the daily allowance of its account is renewed, in Unix seconds; empty: it waits
    /// for neither.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub continues_at: String,
    /// The time of creation in Unix seconds.
    pub created_at: String,
    /// The task's own proxy, without user name and password; empty: as in the settings.
    pub proxy_url: String,
    /// The id of its queue.
    pub queue_id: String,
    /// The expected checksum, as `algorithm=hex`; empty: none.
    pub checksum: String,
    /// Whether any TLS certificate is accepted.
    pub ignore_tls_errors: bool,
    /// Whether the finished file was missing at the last check.
    pub file_missing: bool,
    /// The time of completion in Unix seconds; empty before.
    pub completed_at: String,
    /// The `Referer` header.
    pub referrer: String,
    /// The id of its group; empty: none.
    pub group_id: String,
    /// The id of the feed that created it; empty: none.
    pub rss_source_id: String,
    /// Who created it without the access key: the `Origin` of a browser extension, or `link:` and the fingerprint of a
    /// paired device; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// Words of the user by which tasks are found, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The URL to show instead of `url`; empty: `url`.
    pub origin_url: String,
    /// Reserved; empty.
    pub auto_route: String,
    /// The position in the queue, from 1; tasks with 0 follow, oldest first.
    pub queue_order: u32,
    /// Bytes uploaded. 0 for all but torrents, like all fields of seeding.
    pub uploaded_bytes: u64,
    /// Bytes that were uploaded before completion.
    pub uploaded_at_completion: u64,
    /// 0: not seeding, 1: seeding, 2: a ratio was reached, 3: the time was reached, 4: a user stopped it, 6: switched off, or
    /// it failed (`seedingMessage`), 7: nothing was uploaded for long enough, 8: waits for a slot.
    pub seeding_status: u8,
    /// Why seeding failed; else empty.
    pub seeding_message: String,
    /// Seconds of seeding, brought up to date with each upload and every ten minutes.
    pub seeding_time_secs: u64,
    /// The task's own limit; -2: as in the settings, -1: none.
    pub seed_ratio_limit_milli: i64,
    /// The task's own limit; -2: as in the settings, -1: none.
    pub seed_post_ratio_limit_milli: i64,
    /// The task's own limit; -2: as in the settings, -1: none.
    pub seed_time_limit_minutes: i64,
    /// The task's own limit; -2: as in the settings, -1: none.
    pub seed_inactive_time_limit_minutes: i64,
}

impl TaskDto {
    /// What members are unless something is said: a client that asks for sparse snapshots
    /// ([`crate::capability::CLIENT_SPARSE`]) takes a member that is left out from here.
    pub fn usual() -> Self {
        Self {
            seed_ratio_limit_milli: -2,
            seed_post_ratio_limit_milli: -2,
            seed_time_limit_minutes: -2,
            seed_inactive_time_limit_minutes: -2,
            ..Self::default()
        }
    }
}

/// A login that a task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginNeedDto {
    /// The plugin.
    pub identity: String,
    /// The slot of its manifest.
    pub slot: String,
    /// The account; empty: any of the slot.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
}

/// Progress of a running task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskRuntimeDto {
    /// The id of the task.
    pub task_id: String,
    /// The time of the sample in Unix milliseconds.
    pub sampled_at_ms: i64,
    /// Increases with every sample since the start of the daemon.
    pub sample_sequence: u64,
    /// Connections in use.
    pub active_transfers: Option<u32>,
    /// Peers of a torrent that are connected.
    pub connected_peers: Option<u32>,
    /// Those of them that have everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected_seeds: Option<u32>,
    /// The maximum number of connections.
    pub parallelism_limit: Option<u32>,
    /// Bytes of the file on disk.
    pub downloaded_bytes: u64,
    /// The size of the file in bytes; 0: unknown.
    pub total_bytes: u64,
    /// Download speed in bytes per second, smoothed.
    pub download_bps: u64,
    /// Upload speed in bytes per second, smoothed.
    pub upload_bps: u64,
    /// Bytes uploaded, those of earlier runs included. 0 for all but torrents.
    pub uploaded_bytes: u64,
    /// The segments in order; empty if there is only one.
    pub segments: Vec<SegmentDto>,
    /// The servers that send, with their connections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerDto>,
}

/// The connections to one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerDto {
    /// The task's URL, or one that its plugin found, without user name and password.
    pub url: String,
    /// Where it led, after redirects; empty: to itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_url: String,
    /// Bytes per second of each connection, smoothed.
    pub download_bps: Vec<u64>,
}

/// One byte range of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SegmentDto {
    /// Its position, from 0.
    pub index: u32,
    /// First byte.
    pub start_byte: u64,
    /// Last byte.
    pub end_byte: u64,
    /// Bytes of it on disk.
    pub downloaded_bytes: u64,
    /// Whether a connection is downloading it.
    pub active: Option<bool>,
}

/// Names a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskIdParams {
    /// The task.
    #[serde(rename = "taskId", alias = "id")]
    pub task_id: String,
}

/// `agent.task.open`: opens a finished file on the service's own desktop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenTaskParams {
    /// The task.
    pub task_id: String,
    /// Shows the file in its directory instead of opening it.
    #[serde(default)]
    pub reveal: bool,
}

/// Names tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskIdsParams {
    /// The tasks.
    #[serde(rename = "taskIds", alias = "ids")]
    pub task_ids: Vec<String>,
}

/// Params of `agent.task.find`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindTasksParams {
    /// Ids, or their first characters.
    pub prefixes: Vec<String>,
}

/// Result of `agent.task.find`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundTasks {
    /// The ids that begin so, at most [`FoundTasks::MAX_PER_PREFIX`] for each prefix.
    pub task_ids: Vec<String>,
}

impl FoundTasks {
    /// More than one means that a prefix is ambiguous; the rest are examples for the user.
    pub const MAX_PER_PREFIX: usize = 5;
}

/// Params of `daemon.task.setSeedLimits`. Of each limit, -2 is the one in the settings and -1 none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedLimitParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// Uploaded bytes by the torrent's size, in thousandths.
    pub ratio_limit_milli: i64,
    /// The same of what is uploaded after completion.
    pub post_ratio_limit_milli: i64,
    /// Minutes of seeding.
    pub seed_time_limit_minutes: i64,
    /// Seconds of seeding, in place of the minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_time_limit_secs: Option<i64>,
    /// Minutes without an upload.
    pub inactive_time_limit_minutes: i64,
    /// Upload limit in bytes per second; 0: none.
    pub upload_limit_bps: u64,
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
    /// The options of the task.
    pub request: CreateTaskRequest,
    /// As `request.torrentBlobId`, of which only one may be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torrent_blob_id: Option<String>,
    /// Whether no user is present to answer questions.
    #[serde(default)]
    pub unattended: bool,
    /// The size of the file according to the page or program that supplied the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_file_size: Option<i64>,
    /// The id of the new task, a UUID. A repeated call then fails with `conflict` instead of creating a second task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The origin of the URLs, if it was not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
}

/// An origin of URLs other than the user, for example a web page. Its URLs may lead only to public addresses and to
/// `userHost`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requester {
    /// The host of the URL that the user entered, which led to these; empty: none. Never taken from the page itself.
    pub user_host: String,
    /// Whether `userHost` may be reached wherever it is, as if the user had entered it: they allowed that for this origin.
    #[serde(skip_serializing_if = "is_default")]
    pub is_host_allowed: bool,
    /// `link:` and the fingerprint of the paired device that sent the task, or the `Origin` of the browser extension that creates the task without an access key; empty: none. The extension
    /// may see and change the task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_by: String,
}

/// Params of `daemon.task.createMany`. All tasks are created, or none if one is invalid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTasksParams {
    /// The options of each task.
    pub requests: Vec<CreateTaskRequest>,
    /// The origin of the URLs, if it was not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
}

/// Result of `daemon.task.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTask {
    /// The task.
    pub task_id: String,
    /// A hint as text for users, for example that a plugin for the URL waits for consent; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// All tasks of a Metalink document, `taskId` first; absent for one URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
}

/// Result of `daemon.task.createMany`, in the order of the requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTasks {
    /// The tasks.
    pub task_ids: Vec<String>,
    /// Hints as in [`CreatedTask`], without duplicates.
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

/// Params of `daemon.task.setTags`: replaces all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskTagsParams {
    /// The task, whatever its state.
    #[serde(alias = "id")]
    pub task_id: String,
    /// Its tags: at most 32, of at most 64 bytes each.
    pub tags: Vec<String>,
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

/// An entry in the history of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityEntry {
    /// Increases with every entry.
    pub id: i64,
    /// The task.
    pub task_id: String,
    /// The time in Unix milliseconds.
    pub timestamp_ms: i64,
    /// `status`, `notice`, `source` (one of several failed), `retry` or `skipped`; newer kinds may follow.
    pub kind: String,
    /// The message, as text for users.
    pub message: String,
    /// The new state, if it changed.
    pub status: Option<TaskStatus>,
    /// The kind of the failure that it tells of, as in `errorKind` of a task; else absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_kind: String,
}

/// A page of a task's history, oldest entry first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityPage {
    /// The entries.
    pub items: Vec<ActivityEntry>,
    /// Whether there are more entries in the requested direction.
    pub has_more: bool,
}

/// Result of `daemon.task.sources`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSources {
    /// The task's URL and its mirrors; then others that failed: links that its plugin found, and URLs that were replaced.
    pub sources: Vec<TaskSource>,
}

/// A source of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSource {
    /// Its URL, without a password.
    pub url: String,
    /// Its last failure beside other sources, as far back as the task's history goes. Of the only source of a task, the
    /// task's own failure tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SourceFailureDto>,
}

/// Why a source failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceFailureDto {
    /// The time in Unix milliseconds.
    pub timestamp_ms: i64,
    /// The kind of the failure, as in `errorKind` of a task.
    pub error_kind: String,
    /// The message, as text for users.
    pub message: String,
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
    /// The id of the uploaded bytes. It is valid for a few minutes and can be used once.
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
