//! What agent, daemon and their clients say to each other over `/rpc`.
//!
//! *Owns* the envelope, the method names, every record of params, results, snapshots and events, and the proof by which
//! agent and daemon recognise each other.
//!
//! *Never* decides anything: no task, no socket, no file. Both sides are written against it, and so is a client in any
//! other language.
//!
//! Start reading at [`Request`] and [`Reply`] (one frame each), then [`Method`], then [`DaemonEvent`].
//!
//! # A connection
//!
//! 1. `GET /rpc` is upgraded to a WebSocket. One JSON-RPC 2.0 object per text frame, never an array.
//! 2. The agent proves that it knows the daemon's token without sending it: [`proof`]. Anything else first is refused
//!    and the socket closed. A client that sent the token as Bearer on the upgrade is past this step.
//! 3. [`Method::SystemHello`], once. Only `system.shutdown` and `system.ping` are answered before it.
//! 4. [`Method::SystemSnapshot`] answers everything as of one `sequence` and begins the events: notifications
//!    [`SERVICE_EVENT`] whose `sequence` grows by one each within an `epoch`. Events up to the snapshot's sequence may
//!    arrive around it and are to be skipped. A reader that falls behind is closed with [`close::EVENT_GAP`] and starts
//!    over.
//!
//! # Reading one's own writes
//!
//! On one connection, a reply to a call that changed something is sent after the events up to that change: who handles
//! frames in order has seen them. A client that says [`capability::CLIENT_SEQUENCES`] in its hello also gets the
//! sequence in the reply, as a member `sequence` beside `result`; who does not say it gets plain JSON-RPC replies.

pub mod agent;
pub mod capability;
mod capture;
pub mod close;
mod config;
pub mod endpoint;
mod envelope;
mod error;
mod event;
mod group;
mod market;
mod method;
mod misfit;
mod plugin;
pub mod proof;
mod queue;
mod runtime;
mod session;
mod site;
mod snapshot;
mod task;

pub use capture::{
    CaptureResolveParams, CaptureResolved, CaptureResult, CaptureSubmitParams, DownloadRequest, PendingCaptureDto,
};
pub use config::{ConfigPatch, ConfigSnapshot, ConnPolicyResult, ProxyTestParams, ProxyTestResult, SystemProxyResult};
pub use envelope::{Id, Reply, Request, SERVICE_EVENT, ServerFrame, encode_notification, encode_request};
pub use error::{ErrorCode, ErrorData, Reason, RpcError, code};
pub use event::{DaemonEvent, EventBody, Service, ServiceEvent, ServiceEventParams, TasksSnapshot};
pub use group::{CreateGroupRequest, CreateGroupResponse, CreateGroupTasksParams, GroupDto};
pub use market::{
    MarketEntryDto, MarketInstallRequest, MarketInstalledDto, MarketRefreshRequest, MarketSourceAddRequest,
    MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, RevocationDto, SetPluginPinnedParams,
    SetPluginPinnedRequest,
};
pub use method::Method;
pub use misfit::{Misfit, from_json, from_value};
pub use plugin::{
    ChoosePluginHostParams, ChoosePluginHostRequest, DevErrorDto, DisabledReason, GroupItemDto,
    InstallPluginDevRequest, InstallPluginFileParams, InstallPluginParams, InstalledPlugin, OptionalHostDto,
    PendingVersionDto, PluginCallDto, PluginDto, PluginEventDto, PluginJournalDto, PluginLineDto, PluginParams,
    PluginRequestDto, PreviewItemDto, PreviewVariantDto, ResolvePreviewRequest, ResolvePreviewResponse,
    SetPluginEnabledParams, SetPluginEnabledRequest, SettingFieldDto, SettingOptionDto, UpdatePluginSettingsParams,
};
pub use queue::{
    BoostParams, MoveTaskParams, QueueDto, QueueFields, QueueIdParams, ReorderParams, ScheduleParams, UpdateQueueParams,
};
pub use runtime::{DiagnosticsResult, ExportResult, FsEntry, FsListParams, FsListResult, RuntimeStats};
pub use session::{HelloParams, HelloResult, OkResult, PROTOCOL_VERSION, Role, ShutdownParams, SnapshotResult};
pub use site::{SiteAuthCredential, SiteAuthEntryDto, SiteAuthSaveRequest, SiteParams, SiteUrlParams};
pub use snapshot::{DaemonSnapshot, SnapshotBody};
pub use task::{
    ActivityEntry, ActivityPage, ActivityParams, BlobResult, ChangeTaskParams, ChangeUrlParams, ChangedTask,
    CreateTaskParams, CreateTaskRequest, CreateTasksParams, CreatedTask, CreatedTasks, DeleteTaskParams,
    DeleteTasksParams, GroupDeleteParams, GroupIdParams, RenameTaskParams, RequestBody, SegmentDto, SpeedLimitParams,
    Stranger, TaskDto, TaskIdParams, TaskIdsParams, TaskRuntimeDto, TaskStatus,
};

/// The largest frame that a server reads is one byte less: a frame of this many bytes is refused.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// The largest frame that a client must be ready to read: the snapshot of a few hundred thousand tasks.
pub const MAX_REPLY_BYTES: usize = 512 * 1024 * 1024;

/// Slow calls (network, large directories) that one connection may have in flight.
pub const SLOW_LANE: usize = 16;

/// The largest body of `POST /blobs/{kind}`.
pub const MAX_BLOB_BYTES: usize = 4 * 1024 * 1024;
