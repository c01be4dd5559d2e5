//! The methods of the protocol, each with its params and its result.

use std::any;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    ActivityPage, ActivityParams, BoostParams, CaptureResolveParams, CaptureResolved, CaptureResult,
    CaptureSubmitParams, ChangeTaskParams, ChangeUrlParams, ChangedTask, ChoosePluginHostParams, ComponentDto,
    ComponentParams, ConfigPatch, ConfigSchema, ConfigSnapshot, ConnPolicyResult, CreateGroupRequest,
    CreateGroupResponse, CreateGroupTasksParams, CreateTaskParams, CreateTaskRequest, CreateTasksParams, CreatedTask,
    CreatedTasks, DeleteTaskParams, DeleteTasksParams, DiagnosticsResult, ExportResult, FindTasksParams, FoundTasks,
    FsListParams, FsListResult, GroupDeleteParams, GroupDto, GroupIdParams, HelloParams, HelloResult,
    InstallPluginDevRequest, InstallPluginFileParams, InstallPluginParams, InstalledPlugin, LinkAddressParams,
    LinkDeviceInfo, LinkDeviceParams, LinkDiscoveredPeer, LinkDiscoveryParams, LinkDispatchParams, LinkDispatched,
    LinkOutboxEntry, LinkOutboxParams, LinkPairApproveRequest, LinkPairBeginParams, LinkPairBeginResponse,
    LinkPairFinishRequest, LinkPairFinishResponse, LinkPairingCode, LinkPairingRequestDto, LinkRows, LinkUpdateParams,
    MarketEntryDto, MarketInstallRequest, MarketRefreshRequest, MarketSourceAddRequest, MarketSourceAddResponse,
    MarketSourceDto, MarketSourceParams, MoveTaskParams, OkResult, OpenTaskParams, PendingCaptureDto,
    PluginAuthRequest, PluginAuthResponse, PluginDto, PluginJournalDto, PluginParams, PostCleared, PostJobParams,
    PostJobs, PostPasswords, PostStartRequest, PostStarted, ProxyTestParams, ProxyTestResult, QueueDto, QueueFields,
    QueueIdParams, RenameTaskParams, RenameTorrentFileParams, ReorderParams, ResolvePreviewRequest,
    ResolvePreviewResponse, RssCreatedSource, RssExportResponse, RssImportRequest, RssImportResponse,
    RssItemActionParams, RssItemDto, RssSourceDto, RssSourceParams, RssValidateRequest, RssValidateResponse,
    RuntimeStats, ScheduleParams, SeedLimitParams, SelectionResolveParams, SetPluginEnabledParams,
    SetPluginPinnedParams, SiteAuthCredential, SiteAuthEntryDto, SiteAuthSaveRequest, SiteCookiesDto,
    SiteCookiesImportRequest, SiteParams, SiteUrlParams, SnapshotResult, SpeedLimitParams, SystemProxyResult, TaskDto,
    TaskIdParams, TaskIdsParams, TaskRuntimeDto, TaskSources, TaskTagsParams, TorrentChangeParams, TorrentDto,
    TorrentExport, TorrentFiles, TorrentFilesParams, TorrentPeers, TorrentPieces, TorrentPiecesParams,
    TorrentSessionDto, TorrentTrackers, TrackerListsRefreshed, UninstallPluginParams, UpdatePluginSettingsParams,
    UpdateQueueParams, VaultRotated, WebhookDeliveries, WebhookDeliveryDto, WebhookSimulateParams, WebhookSimulated,
    WebhookTestParams,
    agent::{
        AgentSnapshot, GatewayPatch, GatewayStatusDto, OpenTicket, Preferences, PreferencesPatch, PreferencesPatched,
        RevealedToken,
    },
    proof,
};

macro_rules! methods {
    ($($(#[$doc:meta])+ $family:ident { $($name:ident = $text:literal ($params:ty) -> $result:ty),+ $(,)? })+) => {
        /// A method. The name says what it does; its params and result are the records of this crate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "a method is named after what it does")]
        pub enum Method {
            $($($name,)+)+
        }

        /// Methods of one subject, all answered by the same component.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum MethodFamily {
            $($(#[$doc])+ $family,)+
        }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)+)+];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Self::$name => $text,)+)+
                }
            }

            /// The method of that name.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($($text => Some(Self::$name),)+)+
                    _ => None,
                }
            }

            /// The Rust type of its params.
            pub fn params_type(self) -> &'static str {
                match self {
                    $($(Self::$name => any::type_name::<$params>(),)+)+
                }
            }

            /// The Rust type of its result.
            pub fn result_type(self) -> &'static str {
                match self {
                    $($(Self::$name => any::type_name::<$result>(),)+)+
                }
            }

            /// Whether `result` is what the table says and nothing else: read and written again it has the same members.
            pub fn check_result(self, result: &RawValue) -> Result<(), String> {
                match self {
                    $($(Self::$name => same::<$result>(result),)+)+
                }
            }

            /// What it is about.
            pub fn family(self) -> MethodFamily {
                match self {
                    $($(Self::$name)|+ => MethodFamily::$family,)+
                }
            }
        }
    };
}

methods! {
    /// The connection itself.
    System {
        SystemAuthChallenge = "system.auth.challenge" (proof::ChallengeParams) -> proof::ChallengeResult,
        SystemAuthProve = "system.auth.prove" (proof::ProveParams) -> proof::ProveResult,
        SystemHello = "system.hello" (HelloParams) -> HelloResult,
        SystemPing = "system.ping" (()) -> OkResult,
        SystemSnapshot = "system.snapshot" (()) -> SnapshotResult<AgentSnapshot>,
        SystemShutdown = "system.shutdown" (()) -> OkResult,
    }
    /// Tasks.
    Task {
        TaskList = "daemon.task.list" (()) -> Vec<TaskDto>,
        TaskGet = "daemon.task.get" (TaskIdParams) -> TaskDto,
        TaskActivity = "daemon.task.activity" (ActivityParams) -> ActivityPage,
        TaskSources = "daemon.task.sources" (TaskIdParams) -> TaskSources,
        TaskCreate = "daemon.task.create" (CreateTaskParams) -> CreatedTask,
        TaskCreateMany = "daemon.task.createMany" (CreateTasksParams) -> CreatedTasks,
        TaskPause = "daemon.task.pause" (TaskIdParams) -> OkResult,
        TaskResume = "daemon.task.resume" (TaskIdParams) -> OkResult,
        TaskRequest = "daemon.task.request" (TaskIdParams) -> CreateTaskRequest,
        TaskChange = "daemon.task.change" (ChangeTaskParams) -> ChangedTask,
        TaskRename = "daemon.task.rename" (RenameTaskParams) -> OkResult,
        TaskChangeUrl = "daemon.task.changeUrl" (ChangeUrlParams) -> ChangedTask,
        TaskDelete = "daemon.task.delete" (DeleteTaskParams) -> OkResult,
        TaskPauseAll = "daemon.task.pauseAll" (()) -> OkResult,
        TaskResumeAll = "daemon.task.resumeAll" (()) -> OkResult,
        TaskRescan = "daemon.task.rescan" (()) -> OkResult,
        TaskSetSpeedLimit = "daemon.task.setSpeedLimit" (SpeedLimitParams) -> OkResult,
        TaskSetSeedLimits = "daemon.task.setSeedLimits" (SeedLimitParams) -> OkResult,
        TaskSetTags = "daemon.task.setTags" (TaskTagsParams) -> OkResult,
        TaskPauseMany = "daemon.task.pauseMany" (TaskIdsParams) -> OkResult,
        TaskResumeMany = "daemon.task.resumeMany" (TaskIdsParams) -> OkResult,
        TaskDeleteMany = "daemon.task.deleteMany" (DeleteTasksParams) -> OkResult,
    }
    /// Torrents of tasks, and what all torrents have in common.
    Torrent {
        TorrentGet = "daemon.torrent.get" (TaskIdParams) -> TorrentDto,
        TorrentFiles = "daemon.torrent.files" (TorrentFilesParams) -> TorrentFiles,
        TorrentPeers = "daemon.torrent.peers" (TaskIdParams) -> TorrentPeers,
        TorrentTrackers = "daemon.torrent.trackers" (TaskIdParams) -> TorrentTrackers,
        TorrentPieces = "daemon.torrent.pieces" (TorrentPiecesParams) -> TorrentPieces,
        TorrentExport = "daemon.torrent.export" (TaskIdParams) -> TorrentExport,
        TorrentChange = "daemon.torrent.change" (TorrentChangeParams) -> OkResult,
        TorrentRenameFile = "daemon.torrent.renameFile" (RenameTorrentFileParams) -> OkResult,
        TorrentRecheck = "daemon.torrent.recheck" (TaskIdParams) -> OkResult,
        TorrentReannounce = "daemon.torrent.reannounce" (TaskIdParams) -> OkResult,
        TorrentSession = "daemon.torrent.session" (()) -> TorrentSessionDto,
        TorrentRefreshTrackerLists = "daemon.bt.trackerSubscription.refresh" (()) -> TrackerListsRefreshed,
    }
    /// Questions that tasks ask their user.
    Selection {
        SelectionSubscribe = "daemon.selection.subscribe" (()) -> OkResult,
        SelectionUnsubscribe = "daemon.selection.unsubscribe" (()) -> OkResult,
        SelectionResolve = "daemon.selection.resolve" (SelectionResolveParams) -> OkResult,
    }
    /// Queues and groups.
    Queue {
        QueueList = "daemon.queue.list" (()) -> Vec<QueueDto>,
        QueueCreate = "daemon.queue.create" (QueueFields) -> OkResult,
        QueueUpdate = "daemon.queue.update" (UpdateQueueParams) -> OkResult,
        QueueDelete = "daemon.queue.delete" (QueueIdParams) -> OkResult,
        QueueStart = "daemon.queue.start" (QueueIdParams) -> OkResult,
        QueueStop = "daemon.queue.stop" (QueueIdParams) -> OkResult,
        QueueSchedule = "daemon.queue.schedule" (ScheduleParams) -> OkResult,
        QueueReorder = "daemon.queue.reorder" (ReorderParams) -> OkResult,
        QueueMoveTask = "daemon.queue.moveTask" (MoveTaskParams) -> OkResult,
        QueueBoost = "daemon.queue.boost" (BoostParams) -> OkResult,
        GroupList = "daemon.group.list" (()) -> Vec<GroupDto>,
        GroupCreate = "daemon.group.create" (CreateGroupRequest) -> CreateGroupResponse,
        GroupCreateTasks = "daemon.group.createTasks" (CreateGroupTasksParams) -> CreateGroupResponse,
        GroupPause = "daemon.group.pause" (GroupIdParams) -> OkResult,
        GroupResume = "daemon.group.resume" (GroupIdParams) -> OkResult,
        GroupDelete = "daemon.group.delete" (GroupDeleteParams) -> OkResult,
        GroupResolvePreview = "daemon.group.resolvePreview" (ResolvePreviewRequest) -> ResolvePreviewResponse,
    }
    /// Plugins and the market.
    Plugin {
        PluginList = "daemon.plugin.list" (()) -> Vec<PluginDto>,
        PluginInstall = "daemon.plugin.install" (InstallPluginParams) -> InstalledPlugin,
        PluginInstallDev = "daemon.plugin.installDev" (InstallPluginDevRequest) -> InstalledPlugin,
        PluginUninstall = "daemon.plugin.uninstall" (UninstallPluginParams) -> OkResult,
        PluginSetEnabled = "daemon.plugin.setEnabled" (SetPluginEnabledParams) -> OkResult,
        PluginUpdateSettings = "daemon.plugin.updateSettings" (UpdatePluginSettingsParams) -> OkResult,
        PluginRollBack = "daemon.plugin.rollBack" (PluginParams) -> OkResult,
        PluginChooseHost = "daemon.plugin.chooseHost" (ChoosePluginHostParams) -> OkResult,
        PluginInstallFile = "daemon.plugin.installFile" (InstallPluginFileParams) -> InstalledPlugin,
        PluginJournal = "daemon.plugin.journal" (PluginParams) -> PluginJournalDto,
        PluginIgnoreRetry = "daemon.plugin.ignoreRetry" (TaskIdParams) -> OkResult,
        PluginSetPinned = "daemon.plugin.setPinned" (SetPluginPinnedParams) -> OkResult,
        PluginAuth = "daemon.plugin.auth" (PluginAuthRequest) -> PluginAuthResponse,
        PluginMarketList = "daemon.plugin.marketList" (()) -> Vec<MarketEntryDto>,
        PluginMarketInstall = "daemon.plugin.marketInstall" (MarketInstallRequest) -> InstalledPlugin,
        PluginMarketRefresh = "daemon.plugin.marketRefresh" (MarketRefreshRequest) -> Vec<MarketSourceDto>,
        PluginMarketSourceList = "daemon.plugin.marketSourceList" (()) -> Vec<MarketSourceDto>,
        PluginMarketSourceAdd = "daemon.plugin.marketSourceAdd" (MarketSourceAddRequest) -> MarketSourceAddResponse,
        PluginMarketSourceRemove = "daemon.plugin.marketSourceRemove" (MarketSourceParams) -> OkResult,
    }
    /// The configuration.
    Config {
        ConfigGet = "daemon.config.get" (()) -> ConfigSnapshot,
        ConfigSchema = "daemon.config.schema" (()) -> ConfigSchema,
        ConfigPatch = "daemon.config.patch" (ConfigPatch) -> ConfigSnapshot,
        ConfigProxyTest = "daemon.config.proxyTest" (ProxyTestParams) -> ProxyTestResult,
        ConfigConnPolicy = "daemon.config.connPolicy" (()) -> ConnPolicyResult,
        ConfigClearConnPolicy = "daemon.config.clearConnPolicy" (()) -> ConnPolicyResult,
        ConfigSystemProxy = "daemon.config.systemProxy" (()) -> SystemProxyResult,
    }
    /// Logins of sites.
    SiteAuth {
        SiteAuthList = "daemon.siteAuth.list" (()) -> Vec<SiteAuthEntryDto>,
        SiteAuthGet = "daemon.siteAuth.get" (SiteParams) -> Option<SiteAuthCredential>,
        SiteAuthMatch = "daemon.siteAuth.match" (SiteUrlParams) -> Option<SiteAuthCredential>,
        SiteAuthSave = "daemon.siteAuth.save" (SiteAuthSaveRequest) -> SiteAuthEntryDto,
        SiteAuthDelete = "daemon.siteAuth.delete" (SiteParams) -> Vec<SiteAuthEntryDto>,
        SiteAuthClear = "daemon.siteAuth.clear" (()) -> Vec<SiteAuthEntryDto>,
    }
    /// Cookies of sites.
    SiteCookies {
        SiteCookiesList = "daemon.siteCookies.list" (()) -> Vec<SiteCookiesDto>,
        SiteCookiesImport = "daemon.siteCookies.import" (SiteCookiesImportRequest) -> Vec<SiteCookiesDto>,
        SiteCookiesDelete = "daemon.siteCookies.delete" (SiteParams) -> OkResult,
        SiteCookiesClear = "daemon.siteCookies.clear" (()) -> OkResult,
    }
    /// Subscriptions to feeds.
    Rss {
        RssListSources = "daemon.rss.listSources" (()) -> Vec<RssSourceDto>,
        RssGetItems = "daemon.rss.getItems" (RssSourceParams) -> Vec<RssItemDto>,
        RssCreateSource = "daemon.rss.createSource" (RssSourceDto) -> RssCreatedSource,
        RssUpdateSource = "daemon.rss.updateSource" (RssSourceDto) -> OkResult,
        RssDeleteSource = "daemon.rss.deleteSource" (RssSourceParams) -> OkResult,
        RssRefreshSource = "daemon.rss.refreshSource" (RssSourceParams) -> OkResult,
        RssItemAction = "daemon.rss.itemAction" (RssItemActionParams) -> OkResult,
        RssValidate = "daemon.rss.validate" (RssValidateRequest) -> RssValidateResponse,
        RssImport = "daemon.rss.import" (RssImportRequest) -> RssImportResponse,
        RssExport = "daemon.rss.export" (()) -> RssExportResponse,
    }
    /// Webhooks.
    Webhook {
        WebhookGet = "daemon.webhook.get" (()) -> WebhookDeliveries,
        WebhookClearDeliveries = "daemon.webhook.clearDeliveries" (()) -> OkResult,
        WebhookSimulate = "daemon.webhook.simulate" (WebhookSimulateParams) -> WebhookSimulated,
        WebhookTest = "daemon.webhook.test" (WebhookTestParams) -> WebhookDeliveryDto,
    }
    /// What follows a finished download.
    Post {
        PostList = "daemon.post.list" (()) -> PostJobs,
        PostStart = "daemon.post.start" (PostStartRequest) -> PostStarted,
        PostCancel = "daemon.post.cancel" (PostJobParams) -> OkResult,
        PostRetry = "daemon.post.retry" (PostJobParams) -> OkResult,
        PostClear = "daemon.post.clear" (()) -> PostCleared,
        PostSetPasswords = "daemon.post.setPasswords" (PostPasswords) -> OkResult,
    }
    /// The daemon's machine: sums, directories, programs, diagnostics, the key of the secrets.
    Machine {
        RuntimeStats = "daemon.runtime.stats" (()) -> RuntimeStats,
        FsList = "daemon.fs.list" (FsListParams) -> FsListResult,
        ComponentGet = "daemon.component.get" (ComponentParams) -> ComponentDto,
        DiagnosticsDescribe = "daemon.diagnostics.describe" (()) -> DiagnosticsResult,
        DiagnosticsPrepareLogExport = "daemon.diagnostics.prepareLogExport" (()) -> ExportResult,
        VaultRotate = "daemon.vault.rotate" (()) -> VaultRotated,
    }
    /// What the daemon stores for the device link of its agent.
    LinkStore {
        LinkLoad = "daemon.link.load" (()) -> LinkRows,
        LinkCommit = "daemon.link.commit" (LinkRows) -> OkResult,
    }
    /// Paired devices; the agent answers these itself.
    Link {
        LinkPairingCode = "agent.link.pairingCode" (()) -> LinkPairingCode,
        LinkStopPairing = "agent.link.stopPairing" (()) -> OkResult,
        LinkDiscoverySet = "agent.link.discovery.set" (LinkDiscoveryParams) -> OkResult,
        LinkProbe = "agent.link.probe" (LinkAddressParams) -> LinkDiscoveredPeer,
        LinkPairBegin = "agent.link.pairBegin" (LinkPairBeginParams) -> LinkPairBeginResponse,
        LinkPairFinish = "agent.link.pairFinish" (LinkPairFinishRequest) -> LinkPairFinishResponse,
        LinkApprove = "agent.link.approve" (LinkPairApproveRequest) -> OkResult,
        LinkRefresh = "agent.link.refresh" (()) -> Vec<LinkDeviceInfo>,
        LinkRemove = "agent.link.remove" (LinkDeviceParams) -> OkResult,
        LinkUpdate = "agent.link.update" (LinkUpdateParams) -> LinkDeviceInfo,
        LinkDispatch = "agent.link.dispatch" (LinkDispatchParams) -> LinkDispatched,
        LinkOutbox = "agent.link.outbox" (()) -> Vec<LinkOutboxEntry>,
        LinkOutboxRemove = "agent.link.outboxRemove" (LinkOutboxParams) -> OkResult,
        LinkRequests = "agent.link.requests" (()) -> Vec<LinkPairingRequestDto>,
        LinkDiscovered = "agent.link.discovered" (()) -> Vec<LinkDiscoveredPeer>,
    }
    /// What the agent answers itself.
    Agent {
        GatewayGet = "agent.gateway.get" (()) -> GatewayStatusDto,
        GatewaySchema = "agent.gateway.schema" (()) -> ConfigSchema,
        GatewayPatch = "agent.gateway.patch" (GatewayPatch) -> GatewayStatusDto,
        GatewayRevealToken = "agent.gateway.revealToken" (()) -> RevealedToken,
        PageTicket = "agent.page.ticket" (()) -> OpenTicket,
        PreferencesGet = "agent.preferences.get" (()) -> Preferences,
        PreferencesSchema = "agent.preferences.schema" (()) -> ConfigSchema,
        PreferencesPatch = "agent.preferences.patch" (PreferencesPatch) -> PreferencesPatched,
        FindTasks = "agent.task.find" (FindTasksParams) -> FoundTasks,
        ShowRun = "agent.task.run" (TaskIdParams) -> Option<TaskRuntimeDto>,
        TaskOpen = "agent.task.open" (OpenTaskParams) -> OkResult,
        CaptureSubmit = "agent.capture.submit" (CaptureSubmitParams) -> CaptureResult,
        CaptureList = "agent.capture.list" (()) -> Vec<PendingCaptureDto>,
        CaptureResolve = "agent.capture.resolve" (CaptureResolveParams) -> CaptureResolved,
        ServiceRestart = "agent.service.restart" (()) -> OkResult,
    }
}

fn same<R: Serialize + DeserializeOwned>(result: &RawValue) -> Result<(), String> {
    let read: R = serde_json::from_str(result.get()).map_err(|error| error.to_string())?;
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).map_err(|error| error.to_string());
    let (sent, again) = (
        value(result.get())?,
        serde_json::to_value(read).map_err(|error| error.to_string())?,
    );
    if sent == again {
        return Ok(());
    }
    let members = |value: &serde_json::Value| {
        value
            .as_object()
            .map(|object| object.keys().cloned().collect::<Vec<_>>())
    };
    Err(format!(
        "it is not a {}: {:?} against {:?}",
        any::type_name::<R>(),
        members(&sent),
        members(&again)
    ))
}

impl Method {
    /// Whether the agent answers it itself.
    pub fn is_agents_own(self) -> bool {
        matches!(self.family(), MethodFamily::Agent | MethodFamily::Link)
    }

    /// Whether it may take long, so that it runs beside the others and only [`crate::SLOW_LANE`] of them at once on a
    /// connection. The daemon does not count previews and logins, because plugin calls have their own limits.
    pub fn is_slow(self) -> bool {
        matches!(
            self,
            Self::ConfigProxyTest
                | Self::FsList
                | Self::RssValidate
                | Self::TaskRescan
                | Self::TorrentRecheck
                | Self::TorrentRefreshTrackerLists
                | Self::ComponentGet
                | Self::DiagnosticsPrepareLogExport
                | Self::VaultRotate
                | Self::GroupResolvePreview
                | Self::PluginAuth
                | Self::PluginInstall
                | Self::PluginInstallDev
                | Self::PluginInstallFile
                | Self::PluginMarketList
                | Self::PluginMarketInstall
                | Self::PluginMarketRefresh
                | Self::PluginMarketSourceAdd
                | Self::WebhookTest
                | Self::LinkProbe
                | Self::LinkPairBegin
                | Self::LinkPairFinish
                | Self::LinkRefresh
                | Self::LinkRemove
                | Self::LinkDispatch
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_methods_are_one_to_one() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.name()), Some(*method));
        }
        assert_eq!(Method::parse("daemon.task.nothing"), None);
    }
}
