//! The protocol between agent, daemon and their clients over `/rpc`.
//!
//! *Owns* the envelope, the method names, every record of params, results, snapshots and events, and the proof by which
//! agent and daemon authenticate each other.
//!
//! *Never* decides anything: no task, no socket, no file. Both sides are written against it, and so is a client in any
//! other language.
//!
//! Start reading at [`Request`] and [`Reply`] (one frame each), then [`Method`], then [`DaemonEvent`].
//!
//! # Layers
//!
//! - `client`: the state of a client of `/rpc`: ids of calls and its position in the events
//! - `frame`: requests, replies, errors, methods, and records out of JSON
//! - `agent`: what the agent adds to the daemon's
//! - `snapshot`, `event`: the full state, and its changes
//! - `handshake`: authentication and version negotiation
//! - `record`: params and results
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
pub mod client;
mod event;
mod frame;
mod handshake;
mod record;
mod snapshot;

pub use frame::close;
pub use handshake::{capability, endpoint, proof};

pub use event::{DaemonEvent, EventBody, RssItemsChanged, Service, ServiceEvent, ServiceEventParams, TasksSnapshot};
pub use frame::envelope::{Id, Reply, Request, SERVICE_EVENT, ServerFrame, encode_notification, encode_request};
pub use frame::error::{ErrorCode, ErrorData, Reason, RpcError, code};
pub use frame::method::{Method, MethodFamily};
pub use frame::mismatch::{RecordMismatch, from_json, from_value};
pub use handshake::session::{HelloParams, HelloResult, OkResult, PROTOCOL_VERSION, Role};
pub use record::auth::{
    LoginAccountDto, LoginFieldDto, LoginQrDto, LoginScreenDto, LoginSlotDto, LoginUrlDto, PluginAuthAction,
    PluginAuthRequest, PluginAuthResponse, PluginAuthStatus,
};
pub use record::capture::{
    CaptureResolveParams, CaptureResolved, CaptureResult, CaptureSubmitParams, DownloadRequest, PendingCaptureDto,
};
pub use record::config::{
    ConfigPatch, ConfigSchema, ConfigSnapshot, ConnPolicyResult, ProxyTestParams, ProxyTestResult, SettingDto,
    SettingKind, SystemProxyResult,
};
pub use record::group::{CreateGroupRequest, CreateGroupResponse, CreateGroupTasksParams, GroupDto};
pub use record::left_out::LeftOutDto;
pub use record::link::{
    LinkAddressParams, LinkCodeResponse, LinkDeviceInfo, LinkDeviceParams, LinkDevicePatch, LinkDeviceTaskRequest,
    LinkDevicesResponse, LinkDiscoveredPeer, LinkDiscoveredResponse, LinkDiscoveryParams, LinkDiscoveryRequest,
    LinkDispatchParams, LinkDispatched, LinkOkResponse, LinkOutboxEntry, LinkOutboxParams, LinkOutboxResponse,
    LinkPairApproveRequest, LinkPairBeginParams, LinkPairBeginRequest, LinkPairBeginResponse, LinkPairConfirmRequest,
    LinkPairConfirmResponse, LinkPairFinishRequest, LinkPairFinishResponse, LinkPairHelloRequest,
    LinkPairHelloResponse, LinkPairRequestsResponse, LinkPairRevealRequest, LinkPairRevealResponse, LinkPairingCode,
    LinkPairingRequestDto, LinkPeerSource, LinkProbeRequest, LinkQueued, LinkRow, LinkRows, LinkUnauthorized,
    LinkUpdateParams,
};
pub use record::market::{
    MarketEntryDto, MarketInstallRequest, MarketInstalledDto, MarketRefreshRequest, MarketSourceAddRequest,
    MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, RevocationDto, SetPluginPinnedParams,
    SetPluginPinnedRequest,
};
pub use record::plugin::{
    ChoosePluginHostParams, ChoosePluginHostRequest, DevErrorDto, DisabledReason, GroupItemDto,
    InstallPluginDevRequest, InstallPluginFileParams, InstallPluginParams, InstalledPlugin, OptionalHostDto,
    PendingVersionDto, PluginCallDto, PluginDto, PluginEventDto, PluginHealthDto, PluginJournalDto, PluginLineDto,
    PluginParams, PluginRequestDto, PreviewItemDto, PreviewVariantDto, ResolvePreviewRequest, ResolvePreviewResponse,
    SetPluginEnabledParams, SetPluginEnabledRequest, SettingFieldDto, SettingOptionDto, UninstallPluginParams,
    UpdatePluginSettingsParams,
};
pub use record::post::{
    PostCleared, PostContainer, PostJobDto, PostJobParams, PostJobs, PostPasswords, PostStartRequest, PostStarted,
    PostState, PostStep,
};
pub use record::queue::{
    BoostParams, MoveTaskParams, QueueDto, QueueFields, QueueIdParams, ReorderParams, ScheduleParams, UpdateQueueParams,
};
pub use record::rss::{
    RssCreatedSource, RssExportResponse, RssImportFailure, RssImportRequest, RssImportResponse, RssItemActionParams,
    RssItemActionRequest, RssItemDto, RssItemStatus, RssRuleDto, RssSourceDto, RssSourceParams, RssValidateRequest,
    RssValidateResponse, RssValidatedItem,
};
pub use record::runtime::{
    Component, ComponentDto, ComponentParams, ComponentSource, DiagnosticsResult, ExportResult, FsEntry, FsListParams,
    FsListResult, LogFile, RuntimeStats, VaultRotated,
};
pub use record::selection::{
    MAX_OFFERED_FILES, SelectionDto, SelectionFileDto, SelectionKind, SelectionOutcome, SelectionResolveParams,
    SelectionResolved,
};
pub use record::site::{
    SiteAuthCredential, SiteAuthEntryDto, SiteAuthSaveRequest, SiteCookiesDto, SiteCookiesImportRequest, SiteParams,
    SiteUrlParams,
};
pub use record::task::{
    ActivityEntry, ActivityPage, ActivityParams, BlobResult, ChangeTaskParams, ChangeUrlParams, ChangedTask,
    CreateTaskParams, CreateTaskRequest, CreateTasksParams, CreatedTask, CreatedTasks, DeleteTaskParams,
    DeleteTasksParams, FindTasksParams, FoundTasks, GroupDeleteParams, GroupIdParams, LoginNeedDto, OpenTaskParams,
    RenameTaskParams, RequestBody, Requester, SeedLimitParams, SegmentDto, ServerDto, SourceFailureDto,
    SpeedLimitParams, TaskDto, TaskIdParams, TaskIdsParams, TaskRuntimeDto, TaskSource, TaskSources, TaskStatus,
    TaskTagsParams,
};
pub use record::thunder::unwrapped;
pub use record::torrent::{
    DhtNodeDto, PortMappingDto, RenameTorrentFileParams, TorrentChange, TorrentChangeParams, TorrentDto, TorrentExport,
    TorrentFileDto, TorrentFilePath, TorrentFiles, TorrentFilesParams, TorrentPeerDto, TorrentPeers, TorrentPieces,
    TorrentPiecesParams, TorrentRequest, TorrentSessionDto, TorrentTrackerDto, TorrentTrackers, TrackerListDto,
    TrackerListsRefreshed,
};
pub use record::webhook::{
    WebhookDeliveries, WebhookDeliveryDto, WebhookDeliveryStatus, WebhookEndpointDto, WebhookSimulateParams,
    WebhookSimulated, WebhookTestParams,
};
pub use snapshot::{DaemonSnapshot, SnapshotBody, SnapshotResult};

/// The largest frame that a server reads is one byte less: a frame of this many bytes is refused.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// The largest frame that a client must be ready to read: the snapshot of a few hundred thousand tasks.
pub const MAX_REPLY_BYTES: usize = 512 * 1024 * 1024;

/// Slow calls (network, large directories) that one connection may have in flight.
pub const SLOW_LANE: usize = 16;

/// The largest body of `POST /blobs/{kind}`.
pub const MAX_BLOB_BYTES: usize = 4 * 1024 * 1024;

/// Shown instead of a stored secret; in a change it means "unchanged".
pub const MASKED: &str = "***";
