// Written from the sources of the service by the test
// `the_types_of_the_web_interface_are_those_of_the_protocol` of host/daemon; UPDATE_EXPECT=1 writes it anew.

/** The methods of `/rpc`: the params that each takes (`undefined`: none) and its result. */
export interface Methods {
  "system.auth.challenge": { params: ChallengeParams; result: ChallengeResult };
  "system.auth.prove": { params: ProveParams; result: ProveResult };
  "system.hello": { params: HelloParams; result: HelloResult };
  "system.ping": { params: undefined; result: OkResult };
  "system.snapshot": { params: undefined; result: SnapshotResult<AgentSnapshot> };
  "system.shutdown": { params: undefined; result: OkResult };
  "daemon.task.list": { params: undefined; result: TaskDto[] };
  "daemon.task.get": { params: TaskIdParams; result: TaskDto };
  "daemon.task.activity": { params: ActivityParams; result: ActivityPage };
  "daemon.task.sources": { params: TaskIdParams; result: TaskSources };
  "daemon.task.create": { params: CreateTaskParams; result: CreatedTask };
  "daemon.task.createMany": { params: CreateTasksParams; result: CreatedTasks };
  "daemon.task.pause": { params: TaskIdParams; result: OkResult };
  "daemon.task.resume": { params: TaskIdParams; result: OkResult };
  "daemon.task.request": { params: TaskIdParams; result: CreateTaskRequest };
  "daemon.task.change": { params: ChangeTaskParams; result: ChangedTask };
  "daemon.task.rename": { params: RenameTaskParams; result: OkResult };
  "daemon.task.changeUrl": { params: ChangeUrlParams; result: ChangedTask };
  "daemon.task.delete": { params: DeleteTaskParams; result: OkResult };
  "daemon.task.pauseAll": { params: undefined; result: OkResult };
  "daemon.task.resumeAll": { params: undefined; result: OkResult };
  "daemon.task.rescan": { params: undefined; result: OkResult };
  "daemon.task.setSpeedLimit": { params: SpeedLimitParams; result: OkResult };
  "daemon.task.setSeedLimits": { params: SeedLimitParams; result: OkResult };
  "daemon.task.setTags": { params: TaskTagsParams; result: OkResult };
  "daemon.task.pauseMany": { params: TaskIdsParams; result: OkResult };
  "daemon.task.resumeMany": { params: TaskIdsParams; result: OkResult };
  "daemon.task.deleteMany": { params: DeleteTasksParams; result: OkResult };
  "daemon.torrent.get": { params: TaskIdParams; result: TorrentDto };
  "daemon.torrent.files": { params: TorrentFilesParams; result: TorrentFiles };
  "daemon.torrent.peers": { params: TaskIdParams; result: TorrentPeers };
  "daemon.torrent.trackers": { params: TaskIdParams; result: TorrentTrackers };
  "daemon.torrent.pieces": { params: TorrentPiecesParams; result: TorrentPieces };
  "daemon.torrent.export": { params: TaskIdParams; result: TorrentExport };
  "daemon.torrent.change": { params: TorrentChangeParams; result: OkResult };
  "daemon.torrent.renameFile": { params: RenameTorrentFileParams; result: OkResult };
  "daemon.torrent.recheck": { params: TaskIdParams; result: OkResult };
  "daemon.torrent.reannounce": { params: TaskIdParams; result: OkResult };
  "daemon.torrent.session": { params: undefined; result: TorrentSessionDto };
  "daemon.bt.trackerSubscription.refresh": { params: undefined; result: TrackerListsRefreshed };
  "daemon.selection.subscribe": { params: undefined; result: OkResult };
  "daemon.selection.unsubscribe": { params: undefined; result: OkResult };
  "daemon.selection.resolve": { params: SelectionResolveParams; result: OkResult };
  "daemon.queue.list": { params: undefined; result: QueueDto[] };
  "daemon.queue.create": { params: QueueFields; result: OkResult };
  "daemon.queue.update": { params: UpdateQueueParams; result: OkResult };
  "daemon.queue.delete": { params: QueueIdParams; result: OkResult };
  "daemon.queue.start": { params: QueueIdParams; result: OkResult };
  "daemon.queue.stop": { params: QueueIdParams; result: OkResult };
  "daemon.queue.schedule": { params: ScheduleParams; result: OkResult };
  "daemon.queue.reorder": { params: ReorderParams; result: OkResult };
  "daemon.queue.moveTask": { params: MoveTaskParams; result: OkResult };
  "daemon.queue.boost": { params: BoostParams; result: OkResult };
  "daemon.group.list": { params: undefined; result: GroupDto[] };
  "daemon.group.create": { params: CreateGroupRequest; result: CreateGroupResponse };
  "daemon.group.createTasks": { params: CreateGroupTasksParams; result: CreateGroupResponse };
  "daemon.group.pause": { params: GroupIdParams; result: OkResult };
  "daemon.group.resume": { params: GroupIdParams; result: OkResult };
  "daemon.group.delete": { params: GroupDeleteParams; result: OkResult };
  "daemon.group.resolvePreview": { params: ResolvePreviewRequest; result: ResolvePreviewResponse };
  "daemon.plugin.list": { params: undefined; result: PluginDto[] };
  "daemon.plugin.install": { params: InstallPluginParams; result: InstalledPlugin };
  "daemon.plugin.installDev": { params: InstallPluginDevRequest; result: InstalledPlugin };
  "daemon.plugin.uninstall": { params: UninstallPluginParams; result: OkResult };
  "daemon.plugin.setEnabled": { params: SetPluginEnabledParams; result: OkResult };
  "daemon.plugin.updateSettings": { params: UpdatePluginSettingsParams; result: OkResult };
  "daemon.plugin.rollBack": { params: PluginParams; result: OkResult };
  "daemon.plugin.chooseHost": { params: ChoosePluginHostParams; result: OkResult };
  "daemon.plugin.installFile": { params: InstallPluginFileParams; result: InstalledPlugin };
  "daemon.plugin.journal": { params: PluginParams; result: PluginJournalDto };
  "daemon.plugin.ignoreRetry": { params: TaskIdParams; result: OkResult };
  "daemon.plugin.setPinned": { params: SetPluginPinnedParams; result: OkResult };
  "daemon.plugin.auth": { params: PluginAuthRequest; result: PluginAuthResponse };
  "daemon.plugin.marketList": { params: undefined; result: MarketEntryDto[] };
  "daemon.plugin.marketInstall": { params: MarketInstallRequest; result: InstalledPlugin };
  "daemon.plugin.marketRefresh": { params: MarketRefreshRequest; result: MarketSourceDto[] };
  "daemon.plugin.marketSourceList": { params: undefined; result: MarketSourceDto[] };
  "daemon.plugin.marketSourceAdd": { params: MarketSourceAddRequest; result: MarketSourceAddResponse };
  "daemon.plugin.marketSourceRemove": { params: MarketSourceParams; result: OkResult };
  "daemon.config.get": { params: undefined; result: ConfigSnapshot };
  "daemon.config.schema": { params: undefined; result: ConfigSchema };
  "daemon.config.patch": { params: ConfigPatch; result: ConfigSnapshot };
  "daemon.config.proxyTest": { params: ProxyTestParams; result: ProxyTestResult };
  "daemon.config.connPolicy": { params: undefined; result: ConnPolicyResult };
  "daemon.config.clearConnPolicy": { params: undefined; result: ConnPolicyResult };
  "daemon.config.systemProxy": { params: undefined; result: SystemProxyResult };
  "daemon.siteAuth.list": { params: undefined; result: SiteAuthEntryDto[] };
  "daemon.siteAuth.get": { params: SiteParams; result: SiteAuthCredential | null };
  "daemon.siteAuth.match": { params: SiteUrlParams; result: SiteAuthCredential | null };
  "daemon.siteAuth.save": { params: SiteAuthSaveRequest; result: SiteAuthEntryDto };
  "daemon.siteAuth.delete": { params: SiteParams; result: SiteAuthEntryDto[] };
  "daemon.siteAuth.clear": { params: undefined; result: SiteAuthEntryDto[] };
  "daemon.siteCookies.list": { params: undefined; result: SiteCookiesDto[] };
  "daemon.siteCookies.import": { params: SiteCookiesImportRequest; result: SiteCookiesDto[] };
  "daemon.siteCookies.delete": { params: SiteParams; result: OkResult };
  "daemon.siteCookies.clear": { params: undefined; result: OkResult };
  "daemon.rss.listSources": { params: undefined; result: RssSourceDto[] };
  "daemon.rss.getItems": { params: RssSourceParams; result: RssItemDto[] };
  "daemon.rss.createSource": { params: RssSourceDtoInput; result: RssCreatedSource };
  "daemon.rss.updateSource": { params: RssSourceDtoInput; result: OkResult };
  "daemon.rss.deleteSource": { params: RssSourceParams; result: OkResult };
  "daemon.rss.refreshSource": { params: RssSourceParams; result: OkResult };
  "daemon.rss.itemAction": { params: RssItemActionParams; result: OkResult };
  "daemon.rss.validate": { params: RssValidateRequest; result: RssValidateResponse };
  "daemon.rss.import": { params: RssImportRequest; result: RssImportResponse };
  "daemon.rss.export": { params: undefined; result: RssExportResponse };
  "daemon.webhook.get": { params: undefined; result: WebhookDeliveries };
  "daemon.webhook.clearDeliveries": { params: undefined; result: OkResult };
  "daemon.webhook.simulate": { params: WebhookSimulateParams; result: WebhookSimulated };
  "daemon.webhook.test": { params: WebhookTestParams; result: WebhookDeliveryDto };
  "daemon.post.list": { params: undefined; result: PostJobs };
  "daemon.post.start": { params: PostStartRequest; result: PostStarted };
  "daemon.post.cancel": { params: PostJobParams; result: OkResult };
  "daemon.post.retry": { params: PostJobParams; result: OkResult };
  "daemon.post.clear": { params: undefined; result: PostCleared };
  "daemon.post.setPasswords": { params: PostPasswords; result: OkResult };
  "daemon.runtime.stats": { params: undefined; result: RuntimeStats };
  "daemon.fs.list": { params: FsListParams; result: FsListResult };
  "daemon.component.get": { params: ComponentParams; result: ComponentDto };
  "daemon.diagnostics.describe": { params: undefined; result: DiagnosticsResult };
  "daemon.diagnostics.prepareLogExport": { params: undefined; result: ExportResult };
  "daemon.vault.rotate": { params: undefined; result: VaultRotated };
  "daemon.link.load": { params: undefined; result: LinkRows };
  "daemon.link.commit": { params: LinkRowsInput; result: OkResult };
  "agent.link.pairingCode": { params: undefined; result: LinkPairingCode };
  "agent.link.stopPairing": { params: undefined; result: OkResult };
  "agent.link.discovery.set": { params: LinkDiscoveryParams; result: OkResult };
  "agent.link.probe": { params: LinkAddressParams; result: LinkDiscoveredPeer };
  "agent.link.pairBegin": { params: LinkPairBeginParams; result: LinkPairBeginResponse };
  "agent.link.pairFinish": { params: LinkPairFinishRequest; result: LinkPairFinishResponse };
  "agent.link.approve": { params: LinkPairApproveRequest; result: OkResult };
  "agent.link.refresh": { params: undefined; result: LinkDeviceInfo[] };
  "agent.link.remove": { params: LinkDeviceParams; result: OkResult };
  "agent.link.update": { params: LinkUpdateParams; result: LinkDeviceInfo };
  "agent.link.dispatch": { params: LinkDispatchParams; result: LinkDispatched };
  "agent.link.outbox": { params: undefined; result: LinkOutboxEntry[] };
  "agent.link.outboxRemove": { params: LinkOutboxParams; result: OkResult };
  "agent.link.requests": { params: undefined; result: LinkPairingRequestDto[] };
  "agent.link.discovered": { params: undefined; result: LinkDiscoveredPeer[] };
  "agent.gateway.get": { params: undefined; result: GatewayStatusDto };
  "agent.gateway.schema": { params: undefined; result: ConfigSchema };
  "agent.gateway.patch": { params: GatewayPatch; result: GatewayStatusDto };
  "agent.gateway.revealToken": { params: undefined; result: RevealedToken };
  "agent.page.ticket": { params: undefined; result: OpenTicket };
  "agent.preferences.get": { params: undefined; result: Preferences };
  "agent.preferences.schema": { params: undefined; result: ConfigSchema };
  "agent.preferences.patch": { params: PreferencesPatch; result: PreferencesPatched };
  "agent.task.find": { params: FindTasksParams; result: FoundTasks };
  "agent.task.run": { params: TaskIdParams; result: TaskRuntimeDto | null };
  "agent.task.open": { params: OpenTaskParams; result: OkResult };
  "agent.capture.submit": { params: CaptureSubmitParams; result: CaptureResult };
  "agent.capture.list": { params: undefined; result: PendingCaptureDto[] };
  "agent.capture.resolve": { params: CaptureResolveParams; result: CaptureResolved };
  "agent.service.restart": { params: undefined; result: OkResult };
}

export type MethodName = keyof Methods;

/** The name of every method. */
export const methodNames = [
  "system.auth.challenge",
  "system.auth.prove",
  "system.hello",
  "system.ping",
  "system.snapshot",
  "system.shutdown",
  "daemon.task.list",
  "daemon.task.get",
  "daemon.task.activity",
  "daemon.task.sources",
  "daemon.task.create",
  "daemon.task.createMany",
  "daemon.task.pause",
  "daemon.task.resume",
  "daemon.task.request",
  "daemon.task.change",
  "daemon.task.rename",
  "daemon.task.changeUrl",
  "daemon.task.delete",
  "daemon.task.pauseAll",
  "daemon.task.resumeAll",
  "daemon.task.rescan",
  "daemon.task.setSpeedLimit",
  "daemon.task.setSeedLimits",
  "daemon.task.setTags",
  "daemon.task.pauseMany",
  "daemon.task.resumeMany",
  "daemon.task.deleteMany",
  "daemon.torrent.get",
  "daemon.torrent.files",
  "daemon.torrent.peers",
  "daemon.torrent.trackers",
  "daemon.torrent.pieces",
  "daemon.torrent.export",
  "daemon.torrent.change",
  "daemon.torrent.renameFile",
  "daemon.torrent.recheck",
  "daemon.torrent.reannounce",
  "daemon.torrent.session",
  "daemon.bt.trackerSubscription.refresh",
  "daemon.selection.subscribe",
  "daemon.selection.unsubscribe",
  "daemon.selection.resolve",
  "daemon.queue.list",
  "daemon.queue.create",
  "daemon.queue.update",
  "daemon.queue.delete",
  "daemon.queue.start",
  "daemon.queue.stop",
  "daemon.queue.schedule",
  "daemon.queue.reorder",
  "daemon.queue.moveTask",
  "daemon.queue.boost",
  "daemon.group.list",
  "daemon.group.create",
  "daemon.group.createTasks",
  "daemon.group.pause",
  "daemon.group.resume",
  "daemon.group.delete",
  "daemon.group.resolvePreview",
  "daemon.plugin.list",
  "daemon.plugin.install",
  "daemon.plugin.installDev",
  "daemon.plugin.uninstall",
  "daemon.plugin.setEnabled",
  "daemon.plugin.updateSettings",
  "daemon.plugin.rollBack",
  "daemon.plugin.chooseHost",
  "daemon.plugin.installFile",
  "daemon.plugin.journal",
  "daemon.plugin.ignoreRetry",
  "daemon.plugin.setPinned",
  "daemon.plugin.auth",
  "daemon.plugin.marketList",
  "daemon.plugin.marketInstall",
  "daemon.plugin.marketRefresh",
  "daemon.plugin.marketSourceList",
  "daemon.plugin.marketSourceAdd",
  "daemon.plugin.marketSourceRemove",
  "daemon.config.get",
  "daemon.config.schema",
  "daemon.config.patch",
  "daemon.config.proxyTest",
  "daemon.config.connPolicy",
  "daemon.config.clearConnPolicy",
  "daemon.config.systemProxy",
  "daemon.siteAuth.list",
  "daemon.siteAuth.get",
  "daemon.siteAuth.match",
  "daemon.siteAuth.save",
  "daemon.siteAuth.delete",
  "daemon.siteAuth.clear",
  "daemon.siteCookies.list",
  "daemon.siteCookies.import",
  "daemon.siteCookies.delete",
  "daemon.siteCookies.clear",
  "daemon.rss.listSources",
  "daemon.rss.getItems",
  "daemon.rss.createSource",
  "daemon.rss.updateSource",
  "daemon.rss.deleteSource",
  "daemon.rss.refreshSource",
  "daemon.rss.itemAction",
  "daemon.rss.validate",
  "daemon.rss.import",
  "daemon.rss.export",
  "daemon.webhook.get",
  "daemon.webhook.clearDeliveries",
  "daemon.webhook.simulate",
  "daemon.webhook.test",
  "daemon.post.list",
  "daemon.post.start",
  "daemon.post.cancel",
  "daemon.post.retry",
  "daemon.post.clear",
  "daemon.post.setPasswords",
  "daemon.runtime.stats",
  "daemon.fs.list",
  "daemon.component.get",
  "daemon.diagnostics.describe",
  "daemon.diagnostics.prepareLogExport",
  "daemon.vault.rotate",
  "daemon.link.load",
  "daemon.link.commit",
  "agent.link.pairingCode",
  "agent.link.stopPairing",
  "agent.link.discovery.set",
  "agent.link.probe",
  "agent.link.pairBegin",
  "agent.link.pairFinish",
  "agent.link.approve",
  "agent.link.refresh",
  "agent.link.remove",
  "agent.link.update",
  "agent.link.dispatch",
  "agent.link.outbox",
  "agent.link.outboxRemove",
  "agent.link.requests",
  "agent.link.discovered",
  "agent.gateway.get",
  "agent.gateway.schema",
  "agent.gateway.patch",
  "agent.gateway.revealToken",
  "agent.page.ticket",
  "agent.preferences.get",
  "agent.preferences.schema",
  "agent.preferences.patch",
  "agent.task.find",
  "agent.task.run",
  "agent.task.open",
  "agent.capture.submit",
  "agent.capture.list",
  "agent.capture.resolve",
  "agent.service.restart",
] as const;
export type MethodNameOfTheService = (typeof methodNames)[number];

/** Why a task failed: `errorKind` of a task. */
export const failureKinds = [
  "invalid-source",
  "unsupported-scheme",
  "resolve",
  "connect",
  "timeout",
  "too-slow",
  "network",
  "tls",
  "proxy",
  "unauthorized",
  "forbidden",
  "not-found",
  "still-not-found",
  "gone",
  "busy",
  "server-error",
  "unexpected-status",
  "too-many-redirects",
  "forbidden-redirect",
  "malformed-response",
  "range-mismatch",
  "encoding",
  "not-the-file",
  "changed",
  "size-mismatch",
  "checksum-mismatch",
  "disk-full",
  "quota-exceeded",
  "read-only",
  "permission-denied",
  "directory",
  "in-use",
  "exists",
  "disk-io",
  "plugin",
  "plugin-unavailable",
  "login-required",
  "account-limit",
  "internal",
] as const;
export type FailureKind = (typeof failureKinds)[number];

/** The finer cause of an error of a call. */
export const reasons = [
  "marketUnreachable",
  "marketIndexInvalid",
  "marketIndexRollback",
  "marketVersionChanged",
  "pluginNotInMarket",
  "pluginYanked",
  "pluginDownloadFailed",
  "pluginPackageTooLarge",
  "pluginPackageInvalid",
  "pairingCodeInvalid",
  "pairingSessionExpired",
  "pairingPeerUnreachable",
  "pairingNotSvc",
  "pairingThrottled",
  "pairingRejected",
  "pairingSignatureInvalid",
  "pairingSelf",
  "pairingVersionMismatch",
  "peerNotPaired",
  "peerClockSkew",
  "peerOffline",
  "settingUnknown",
  "saveDirUnavailable",
  "invalid-name",
  "task-active",
  "target-exists",
  "torrent-exists",
  "gatewayPortInUse",
  "gatewayRestartFailed",
] as const;
export type Reason = (typeof reasons)[number];

/** The first word of a plugin's permission; what follows it is to whom. */
export const permissionCodes = [
  "host",
  "inputHost",
  "secret",
  "cookies:read",
  "secrets:derive",
  "secrets:reveal",
  "tools:discover",
  "watch",
  "finishedFiles",
  "tool",
] as const;
export type PermissionCode = (typeof permissionCodes)[number];

/** What a member of a task is that a sparse snapshot leaves out. */
export const usualTask: TaskDto = {
  "taskId": "",
  "url": "",
  "fileName": "",
  "saveDir": "",
  "status": 0,
  "downloadedBytes": 0,
  "totalBytes": 0,
  "errorMessage": "",
  "errorKind": "",
  "createdAt": "",
  "proxyUrl": "",
  "queueId": "",
  "checksum": "",
  "ignoreTlsErrors": false,
  "fileMissing": false,
  "completedAt": "",
  "referrer": "",
  "groupId": "",
  "rssSourceId": "",
  "originUrl": "",
  "autoRoute": "",
  "queueOrder": 0,
  "uploadedBytes": 0,
  "uploadedAtCompletion": 0,
  "seedingStatus": 0,
  "seedingMessage": "",
  "seedingTimeSecs": 0,
  "seedRatioLimitMilli": -2,
  "seedPostRatioLimitMilli": -2,
  "seedTimeLimitMinutes": -2,
  "seedInactiveTimeLimitMinutes": -2
};

/** An entry in the history of a task. */
export interface ActivityEntry {
  /** Increases with every entry. */
  id: number;
  /** The task. */
  taskId: string;
  /** The time in Unix milliseconds. */
  timestampMs: number;
  /** `status`, `notice`, `source` (one of several failed), `retry` or `skipped`; newer kinds may follow. */
  kind: string;
  /** The message, as text for users. */
  message: string;
  /** The new state, if it changed. */
  status: TaskStatus | null;
  /** The kind of the failure that it tells of, as in `errorKind` of a task; else absent. */
  errorKind?: string;
}

/** A page of a task's history, oldest entry first. */
export interface ActivityPage {
  /** The entries. */
  items: ActivityEntry[];
  /** Whether there are more entries in the requested direction. */
  hasMore: boolean;
}

/** Params of `daemon.task.activity`. The newest page by default; the two cursors exclude each other. */
export interface ActivityParams {
  /** The task. */
  taskId: string;
  /** Only entries older than this one. */
  beforeId?: number | null;
  /** Only entries newer than this one. */
  afterId?: number | null;
  /** At most this many, 1 to 200; 50 by default. */
  limit?: number | null;
}

/** An event of the agent, as it is written: what it holds may be borrowed, or JSON that is passed on as it is. */
export type AgentEvent =
  /** An event of the daemon, as it is. */
  | { type: "daemon"; data: DaemonEvent }
  /** The daemon's state anew, after a reconnect: a [`DaemonSnapshot`]. */
  | { type: "daemonSnapshotReplaced"; data: DaemonSnapshot }
  /** Whether the daemon answers. */
  | { type: "daemonConnectionChanged"; data: boolean }
  /** The switches. */
  | { type: "gatewayChanged"; data: GatewayStatusDto }
  /** The preferences. */
  | { type: "preferencesChanged"; data: Preferences }
  /** The captured downloads that wait for the user's confirmation. */
  | { type: "pendingCapturesChanged"; data: PendingCaptureDto[] }
  /** These tasks were made of a download that a browser handed over. */
  | { type: "captureTasksStarted"; data: string[] }
  /** The paired devices. */
  | { type: "linkedDevicesChanged"; data: LinkDeviceInfo[] }
  /** The devices that ask to be paired, and those that this one asked. */
  | { type: "linkPairingRequestsChanged"; data: LinkPairingRequestDto[] }
  /** The devices that announce themselves in this network. */
  | { type: "linkDiscoveredChanged"; data: LinkDiscoveredPeer[] };

/** The agent's snapshot. Lists of parts that an agent does not have are empty. */
export interface AgentSnapshot {
  /** The daemon's snapshot as far as the agent has it. */
  daemon: DaemonSnapshot;
  /** Whether the daemon answers. */
  daemonConnected: boolean;
  /** The preferences. */
  preferences: Preferences;
  /** The switches. */
  gateway: GatewayStatusDto;
  /** Paired devices. */
  linkedDevices: LinkDeviceInfo[];
  /** Captured downloads that wait for the user's confirmation. */
  pendingCaptures: PendingCaptureDto[];
  /** Devices that ask to be paired. */
  linkPairingRequests: LinkPairingRequestDto[];
  /** Devices seen nearby. */
  linkDiscovered: LinkDiscoveredPeer[];
}

/** Params of `daemon.queue.boost`. */
export interface BoostParams {
  /** The task. */
  id: string;
}

/** Params of `agent.capture.resolve`. */
export interface CaptureResolveParams {
  /** The id of the pending capture. */
  transactionId: string;
  /** Whether the user accepts the download. */
  accepted: boolean;
  /** The user's changes to directory, file name and selected URLs. Empty fields change nothing. */
  request?: DownloadRequest | null;
}

/** Result of `agent.capture.resolve`. */
export interface CaptureResolved {
  /** Whether a task was created. */
  accepted: boolean;
  /** The id of the task, or of the first of several. */
  taskId?: string;
  /** The ids of all created tasks. */
  taskIds?: string[];
}

/** The outcome of a submitted download. */
export type CaptureResult =
  /** These tasks were created. */
  | { taskIds: string[] }
  /** The user is asked; these are the ids of the pending captures. */
  | { transactionIds: string[] }
  /** Captures are disabled in the settings. */
  | { ignored: boolean };

/** Params of `agent.capture.submit`. */
export interface CaptureSubmitParams {
  /** The download. */
  request: DownloadRequest;
  /** Whether to create the task without asking the user; `null`: as in the settings. */
  silent?: boolean | null;
}

/** Params of `system.auth.challenge`. */
export interface ChallengeParams {
  /** The agent's nonce. */
  clientNonce: string;
}

/** Result of `system.auth.challenge`. */
export interface ChallengeResult {
  /** The daemon's nonce. */
  serverNonce: string;
  /** The daemon's proof. */
  serverProof: string;
}

/** Params of `daemon.task.change`: what of a task's request becomes something else. */
export interface ChangeTaskParams {
  /** The task; it is not completed. */
  taskId: string;
  /** Fields of a [`CreateTaskRequest`], and what they become. */
  change: Record<string, unknown>;
}

/** Params of `daemon.task.changeUrl`. */
export interface ChangeUrlParams {
  /** The task. */
  taskId: string;
  /** The new source. */
  url: string;
}

/** What `daemon.task.changeUrl` and `daemon.task.change` answer. */
export interface ChangedTask {
  /** Always true: what failed is an error. */
  ok: boolean;
  /** What the user is to know: secrets of the URL before were removed. */
  notice?: string;
}

/** Params of `daemon.plugin.chooseHost`. */
export interface ChoosePluginHostParams {
  /** `name@author`. */
  identity: string;
  /** The host, as in the manifest. */
  host: string;
  /** `once`, `always` or `never`. */
  choice: string;
}

/** A program that the user may have installed and that the service can use. */
export type Component =
  /** `ffmpeg`. */
  | "ffmpeg"
  /** `yt-dlp`. */
  | "ytdlp";

/** Result of `daemon.component.get`. */
export interface ComponentDto {
  /** Which one. */
  component: Component;
  /** Whether the user allows it. */
  enabled: boolean;
  /** Whether it can be used: it is allowed, starts, and is recent enough. */
  available: boolean;
  /** Its version. */
  version: string | null;
  /** Where it is from. */
  source: ComponentSource;
  /** Its path. */
  path: string | null;
  /** Why it cannot be used although it is allowed. */
  problem: string | null;
  /** Whether it has a network and a table of processes of its own while it runs; `null` if it did not start. */
  isolated: boolean | null;
  /** Why it has none: the error of the system. */
  isolationProblem: string | null;
}

/** Params of `daemon.component.get`. */
export interface ComponentParams {
  /** Which one. */
  component: Component;
}

/** Where a program is from. */
export type ComponentSource =
  /** The user gave its path. */
  | "manual"
  /** It is in `PATH`. */
  | "system"
  /** There is none. */
  | "none";

/** Params of `daemon.config.patch`. All keys are changed, or none if one is invalid. */
export interface ConfigPatch {
  /** The revision that the change is based on. */
  expectedRevision: number;
  /** The new values by key. A password of `***` is not changed. */
  values?: Record<string, string>;
  /** The keys that go back to their defaults. */
  unset?: string[];
}

/** Result of `daemon.config.schema`, `agent.gateway.schema` and `agent.preferences.schema`: every setting, in the order in
 * which people look for them. */
export interface ConfigSchema {
  /** The settings. */
  settings: SettingDto[];
}

/** The settings. */
export interface ConfigSnapshot {
  /** Increases with every change. */
  revision: number;
  /** The values by key. A saved password is shown as `***`. */
  values: Record<string, string>;
}

/** Result of `daemon.config.connPolicy` and `clearConnPolicy`. */
export interface ConnPolicyResult {
  /** Number of hosts whose limit of connections was learned. */
  domainCount: number;
}

/** Params of `daemon.group.create`: items of a preview become tasks. */
export interface CreateGroupRequest {
  /** The URL of the preview. */
  sourceUrl?: string;
  /** The group's name. */
  groupName?: string;
  /** The directory in which the group's directory is made; it has the group's name, with a number if that is taken. */
  saveDir?: string;
  /** The queue of its tasks. */
  queueId?: string;
  /** Segments of its tasks. */
  segments?: number;
  /** The `Cookie` header. */
  cookies?: string;
  /** The `Referer` header. */
  referrer?: string;
  /** The `User-Agent` header. */
  userAgent?: string;
  /** The proxy. */
  proxyUrl?: string;
  /** Extra request headers. */
  extraHeaders?: Record<string, string>;
  /** Accept any TLS certificate. */
  ignoreTlsErrors?: boolean;
  /** Create the tasks paused. */
  startPaused?: boolean;
  /** The selected items; at least one. */
  items?: GroupItemDto[];
  /** What the preview says that the list leaves out. */
  leftOut?: LeftOutDtoInput[];
}

/** Result of `daemon.group.create` and `daemon.group.createTasks`. */
export interface CreateGroupResponse {
  /** The group. */
  groupId: string;
  /** Its tasks, in the order of the requests. */
  taskIds: string[];
}

/** Params of `daemon.group.createTasks`: a group of tasks whose sources are known. */
export interface CreateGroupTasksParams {
  /** The group's name. */
  groupName: string;
  /** The URL that its tasks were created from. */
  sourceUrl?: string;
  /** The directory of tasks without a directory of their own. */
  saveDir?: string;
  /** The tasks; at least one. */
  requests: CreateTaskRequestInput[];
}

/** Params of `daemon.task.create`. */
export interface CreateTaskParams {
  /** The options of the task. */
  request: CreateTaskRequestInput;
  /** As `request.torrentBlobId`, of which only one may be given. */
  torrentBlobId?: string | null;
  /** Whether no user is present to answer questions. */
  unattended?: boolean;
  /** The size of the file according to the page or program that supplied the URL. */
  hintFileSize?: number | null;
  /** The id of the new task, a UUID. A repeated call then fails with `conflict` instead of creating a second task. */
  taskId?: string | null;
  /** The origin of the URLs, if it was not the user. */
  requester?: Requester | null;
}

/** The options of a new task. Only `url` is required. */
export interface CreateTaskRequest {
  /** The URL to download. */
  url: string;
  /** Further URLs of the same file. */
  mirrors?: string[];
  /** The file name; empty: the server's, else the URL's. */
  fileName: string;
  /** The directory; empty: the queue's, else the default one. */
  saveDir: string;
  /** Segments that are downloaded in parallel; 0 chooses automatically. */
  segments: number;
  /** The `Cookie` header. */
  cookies: string;
  /** The `Referer` header. */
  referrer: string;
  /** The `User-Agent` header; empty: the queue's, else the global one. */
  userAgent: string;
  /** The proxy's URL, or `direct`; empty: as in the settings. */
  proxyUrl: string;
  /** The id of the queue; empty: the default queue. */
  queueId: string;
  /** The expected checksum, as `algorithm=hex`; empty: none. */
  checksum: string;
  /** The hashes of the file's pieces, as `algorithm=bytes:base64` with the digests one after the other; empty: none. A
   * piece that does not have its hash is fetched again, from another URL if there is one. */
  pieceHashes?: string;
  /** The size of the file in bytes; a server that has another one is not used. `null`: unknown. */
  expectedSizeBytes?: number;
  /** The media type of the link; a web page instead of it fails the download. Empty: unknown. */
  mimeType?: string;
  /** Accept any TLS certificate. */
  ignoreTlsErrors: boolean;
  /** Extra request headers. */
  headers: Record<string, string> | null;
  /** A torrent file in base64. `url` may then be empty and is not used; of a magnet link, the info hash must be the same. */
  torrentB64: string | null;
  /** A torrent file that was uploaded before with `POST /api/web/blobs/torrents`, in place of `torrentB64`. */
  torrentBlobId?: string;
  /** Whether a link whose answer is a torrent file downloads the torrent, in place of that file; `null`: as in the
   * settings. */
  followTorrent?: boolean;
  /** How it is downloaded if it is a torrent; `null`: all of its files. */
  torrent?: TorrentRequest;
  /** A Metalink document in base64, of at most 700 KiB. Each of its files becomes a task with the other options of this
   * request, in a directory of its own if the document gives it one; `url`, `mirrors`, `fileName`, `checksum`,
   * `pieceHashes` and `expectedSizeBytes` are then the document's and must not be given. */
  metalinkB64?: string;
  /** The HTTP method; `null`: GET. */
  method: string | null;
  /** The body of the HTTP request. */
  body: RequestBody | null;
  /** The URL of a separate audio track. Not supported by this version. */
  audioUrl: string | null;
  /** Create the task paused. */
  startPaused: boolean;
  /** User name for HTTP authentication; empty: none. */
  httpUser: string;
  /** The fingerprint of the key that the SSH server of an `sftp` URL has to have: `SHA256:…`, `sha-1=hex` or `md5=hex`. Empty:
   * one of the keys in `known_hosts`. */
  sshHostKey?: string;
  /** Password for HTTP authentication. */
  httpPassword: string;
  /** Save user name and password for further requests to this site. */
  saveSiteAuth: boolean;
  /** The speed limit in bytes per second; 0: none. */
  speedLimitBytes?: number;
  /** If the file exists already: `rename`, `overwrite` or `skip`; empty: as in the settings. */
  fileExistsBehavior?: string;
  /** The maximum number of connections, 1 to 128; `null`: as in the settings. */
  maxConnections?: number;
  /** The smallest segment in bytes; `null`: the default. */
  minSplitBytes?: number;
  /** Failed attempts without progress between them after which the task fails; 0: never; `null`: the default. */
  maxTries?: number;
  /** The minimum number of seconds between two attempts; `null`: the default. */
  retryWaitSecs?: number;
  /** Set the file's modification time to the server's `Last-Modified`; `null`: as in the settings. */
  useServerTime?: boolean;
  /** Close a connection that brings no more bytes per second than this over ten seconds. The task fails with
   * `too-slow` when none is left; 0: no limit. */
  lowestSpeedBytes?: number;
  /** Answers "not found" without a byte of the file after which the task fails with `still-not-found`, counted also
   * in `maxTries`; 0: it fails at the first. */
  maxNotFound?: number;
  /** If a file of the name and size is there and `checksum` is given, check that file: a correct one completes the
   * task, another one is replaced. */
  checkIntegrity?: boolean;
  /** Use no login of the `.netrc` of the user who runs the service. Without this, each of them goes to its host only,
   * and only for URLs that the user gave. */
  noNetrc?: boolean;
  /** The upload limit of a torrent in bytes per second; 0: none. */
  uploadLimitBytes?: number;
  /** Words of the user by which tasks are found: at most 32, of at most 64 bytes each. */
  tags?: string[];
  /** Do not seed the finished torrent. */
  noSeed?: boolean;
  /** The ratio of uploaded bytes to the torrent's size, in thousandths, that ends seeding; -1: none; `null`: as in the
   * settings. */
  seedRatioLimitMilli?: number;
  /** Seconds of seeding; -1: no limit; `null`: as in the settings. */
  seedTimeLimitSecs?: number;
}

/** The options of a new task. Only `url` is required. */
export interface CreateTaskRequestInput {
  /** The URL to download. */
  url?: string;
  /** Further URLs of the same file. */
  mirrors?: string[];
  /** The file name; empty: the server's, else the URL's. */
  fileName?: string;
  /** The directory; empty: the queue's, else the default one. */
  saveDir?: string;
  /** Segments that are downloaded in parallel; 0 chooses automatically. */
  segments?: number;
  /** The `Cookie` header. */
  cookies?: string;
  /** The `Referer` header. */
  referrer?: string;
  /** The `User-Agent` header; empty: the queue's, else the global one. */
  userAgent?: string;
  /** The proxy's URL, or `direct`; empty: as in the settings. */
  proxyUrl?: string;
  /** The id of the queue; empty: the default queue. */
  queueId?: string;
  /** The expected checksum, as `algorithm=hex`; empty: none. */
  checksum?: string;
  /** The hashes of the file's pieces, as `algorithm=bytes:base64` with the digests one after the other; empty: none. A
   * piece that does not have its hash is fetched again, from another URL if there is one. */
  pieceHashes?: string;
  /** The size of the file in bytes; a server that has another one is not used. `null`: unknown. */
  expectedSizeBytes?: number | null;
  /** The media type of the link; a web page instead of it fails the download. Empty: unknown. */
  mimeType?: string;
  /** Accept any TLS certificate. */
  ignoreTlsErrors?: boolean;
  /** Extra request headers. */
  headers?: Record<string, string> | null;
  /** A torrent file in base64. `url` may then be empty and is not used; of a magnet link, the info hash must be the same. */
  torrentB64?: string | null;
  /** A torrent file that was uploaded before with `POST /api/web/blobs/torrents`, in place of `torrentB64`. */
  torrentBlobId?: string | null;
  /** Whether a link whose answer is a torrent file downloads the torrent, in place of that file; `null`: as in the
   * settings. */
  followTorrent?: boolean | null;
  /** How it is downloaded if it is a torrent; `null`: all of its files. */
  torrent?: TorrentRequestInput | null;
  /** A Metalink document in base64, of at most 700 KiB. Each of its files becomes a task with the other options of this
   * request, in a directory of its own if the document gives it one; `url`, `mirrors`, `fileName`, `checksum`,
   * `pieceHashes` and `expectedSizeBytes` are then the document's and must not be given. */
  metalinkB64?: string | null;
  /** The HTTP method; `null`: GET. */
  method?: string | null;
  /** The body of the HTTP request. */
  body?: RequestBodyInput | null;
  /** The URL of a separate audio track. Not supported by this version. */
  audioUrl?: string | null;
  /** Create the task paused. */
  startPaused?: boolean;
  /** User name for HTTP authentication; empty: none. */
  httpUser?: string;
  /** The fingerprint of the key that the SSH server of an `sftp` URL has to have: `SHA256:…`, `sha-1=hex` or `md5=hex`. Empty:
   * one of the keys in `known_hosts`. */
  sshHostKey?: string;
  /** Password for HTTP authentication. */
  httpPassword?: string;
  /** Save user name and password for further requests to this site. */
  saveSiteAuth?: boolean;
  /** The speed limit in bytes per second; 0: none. */
  speedLimitBytes?: number;
  /** If the file exists already: `rename`, `overwrite` or `skip`; empty: as in the settings. */
  fileExistsBehavior?: string;
  /** The maximum number of connections, 1 to 128; `null`: as in the settings. */
  maxConnections?: number | null;
  /** The smallest segment in bytes; `null`: the default. */
  minSplitBytes?: number | null;
  /** Failed attempts without progress between them after which the task fails; 0: never; `null`: the default. */
  maxTries?: number | null;
  /** The minimum number of seconds between two attempts; `null`: the default. */
  retryWaitSecs?: number | null;
  /** Set the file's modification time to the server's `Last-Modified`; `null`: as in the settings. */
  useServerTime?: boolean | null;
  /** Close a connection that brings no more bytes per second than this over ten seconds. The task fails with
   * `too-slow` when none is left; 0: no limit. */
  lowestSpeedBytes?: number;
  /** Answers "not found" without a byte of the file after which the task fails with `still-not-found`, counted also
   * in `maxTries`; 0: it fails at the first. */
  maxNotFound?: number;
  /** If a file of the name and size is there and `checksum` is given, check that file: a correct one completes the
   * task, another one is replaced. */
  checkIntegrity?: boolean;
  /** Use no login of the `.netrc` of the user who runs the service. Without this, each of them goes to its host only,
   * and only for URLs that the user gave. */
  noNetrc?: boolean;
  /** The upload limit of a torrent in bytes per second; 0: none. */
  uploadLimitBytes?: number;
  /** Words of the user by which tasks are found: at most 32, of at most 64 bytes each. */
  tags?: string[];
  /** Do not seed the finished torrent. */
  noSeed?: boolean;
  /** The ratio of uploaded bytes to the torrent's size, in thousandths, that ends seeding; -1: none; `null`: as in the
   * settings. */
  seedRatioLimitMilli?: number | null;
  /** Seconds of seeding; -1: no limit; `null`: as in the settings. */
  seedTimeLimitSecs?: number | null;
}

/** Params of `daemon.task.createMany`. All tasks are created, or none if one is invalid. */
export interface CreateTasksParams {
  /** The options of each task. */
  requests: CreateTaskRequestInput[];
  /** The origin of the URLs, if it was not the user. */
  requester?: Requester | null;
}

/** Result of `daemon.task.create`. */
export interface CreatedTask {
  /** The task. */
  taskId: string;
  /** A hint as text for users, for example that a plugin for the URL waits for consent; empty: none. */
  message?: string;
  /** All tasks of a Metalink document, `taskId` first; absent for one URL. */
  taskIds?: string[];
}

/** Result of `daemon.task.createMany`, in the order of the requests. */
export interface CreatedTasks {
  /** The tasks. */
  taskIds: string[];
  /** Hints as in [`CreatedTask`], without duplicates. */
  messages?: string[];
}

/** An event of the daemon. */
export type DaemonEvent =
  /** A full snapshot that replaces the previous one. */
  | { type: "snapshotReplaced"; data: DaemonSnapshot }
  /** A task is new or changed. */
  | { type: "taskChanged"; data: TaskDto }
  /** One call changed several tasks. Many tasks are split into several events. */
  | { type: "tasksSnapshot"; data: TasksSnapshot }
  /** A task was deleted. */
  | { type: "taskDeleted"; data: {
  /** The task. */
  taskId: string;
  } }
  /** Progress of a run. */
  | { type: "taskRuntimeChanged"; data: TaskRuntimeDto }
  /** A new entry in a task's history. */
  | { type: "taskActivityAdded"; data: ActivityEntry }
  /** All queues. */
  | { type: "queuesChanged"; data: QueueDto[] }
  /** All groups. */
  | { type: "groupsChanged"; data: GroupDto[] }
  /** All plugins, as they are now. */
  | { type: "pluginsChanged"; data: PluginDto[] }
  /** All subscriptions to feeds. At most once a second. */
  | { type: "rssSourcesChanged"; data: RssSourceDto[] }
  /** The items of a subscription changed: what a fetch found, or what became of an item. */
  | { type: "rssItemsChanged"; data: RssItemsChanged }
  /** The configuration. */
  | { type: "configChanged"; data: ConfigSnapshot }
  /** All sites that have credentials. */
  | { type: "siteAuthChanged"; data: SiteAuthEntryDto[] }
  /** The task that runs alone, if one does. */
  | { type: "priorityChanged"; data: string[] }
  /** Sums over the tasks. */
  | { type: "runtimeStatsChanged"; data: RuntimeStats }
  /** These deliveries of webhooks are new or changed. A client keeps the newest 1,000 and replaces those of the same id. */
  | { type: "webhooksChanged"; data: WebhookDeliveryDto[] }
  /** The deliveries of webhooks were forgotten. */
  | { type: "webhooksCleared" }
  /** Jobs that follow downloads are new, further or gone; at most twice a second. */
  | { type: "postJobsChanged" }
  /** A task asks its user something. */
  | { type: "selectionPending"; data: SelectionDto }
  /** A question was answered, or nobody waits for its answer any more. */
  | { type: "selectionResolved"; data: SelectionResolved };

/** The daemon's state. Lists of parts that a daemon does not have are empty. */
export interface DaemonSnapshot {
  /** How the live runs are doing, by task. */
  taskRuntime: Record<string, TaskRuntimeDto>;
  /** All tasks, oldest first. */
  tasks: TaskDto[];
  /** All queues, in order. */
  queues: QueueDto[];
  /** The place of every queue among the queues. */
  queuePositions: Record<string, number>;
  /** All groups, oldest first. */
  groups: GroupDto[];
  /** The configuration. */
  config: ConfigSnapshot;
  /** The sites that have credentials. */
  siteAuth: SiteAuthEntryDto[];
  /** Feeds. */
  rssSources: RssSourceDto[];
  /** Revisions of the feeds' items. */
  rssItemRevisions: Record<string, number>;
  /** Plugins. */
  plugins: PluginDto[];
  /** Components. */
  components: unknown[];
  /** Deliveries of webhooks since the daemon's start, newest first. */
  webhookDeliveries: WebhookDeliveryDto[];
  /** The task that runs alone, if one does. */
  priority: string[];
  /** Sums over the tasks. */
  runtimeStats: RuntimeStats;
  /** Questions that tasks ask their user. */
  pendingSelections: SelectionDto[];
}

/** Params of `daemon.task.delete`. */
export interface DeleteTaskParams {
  /** The task. */
  taskId: string;
  /** Delete the finished file too, if the task made it. */
  deleteFiles?: boolean;
}

/** Params of `daemon.task.deleteMany`. */
export interface DeleteTasksParams {
  /** The tasks. */
  taskIds: string[];
  /** Delete the finished files too, if the tasks made them. */
  deleteFiles?: boolean;
}

/** Why a development folder could not be loaded. */
export interface DevErrorDto {
  /** The step that failed. */
  step: string;
  /** The reason, as text for users. */
  message: string;
}

/** A node of the distributed hash table. */
export interface DhtNodeDto {
  /** Its address and port. */
  address: string;
  /** How many other nodes it knows. */
  nodes: number;
}

/** Result of `daemon.diagnostics.describe`. */
export interface DiagnosticsResult {
  /** The name of the service. */
  service: string;
  /** The version of the service. */
  version: string;
  /** Identifies this start of the service. */
  instanceId: string;
  /** Seconds since it started. */
  uptimeSecs: number;
  /** Number of tasks. */
  tasks: number;
  /** Number of queues. */
  queues: number;
  /** Number of groups. */
  groups: number;
  /** Revision of the configuration. */
  configRevision: number;
  /** The directory of the log files; empty if logs go to standard error. */
  logDir: string;
  /** Open connections. */
  connections: number;
  /** Calls of plugins since the start. */
  pluginCalls: number;
  /** Calls of plugins that failed. */
  pluginFaults: number;
  /** Total duration of these calls. */
  pluginCallMs: number;
  /** Resident memory of the process; `null` if the system does not report it. */
  residentBytes?: number;
  /** Helper programs. */
  components: unknown[];
}

/** Why an installed plugin is disabled. */
export type DisabledReason =
  /** It is enabled, or waits for consent. */
  | "None"
  /** The user disabled it. */
  | "Manual"
  /** It failed too often in a row. */
  | "CircuitBreaker"
  /** Its market source revoked it as malicious. */
  | "Revoked";

/** A download that a browser submits. Only `url` is required; `null` counts as missing. */
export interface DownloadRequest {
  /** The URL, or several separated by line breaks. */
  url?: string;
  /** The file name; empty: the server's, else the URL's. */
  filename?: string;
  /** The directory; empty: the default one. */
  saveDir?: string;
  /** The URL of the page that contains the link. */
  referrer?: string;
  /** The `Cookie` header. */
  cookies?: string;
  /** The headers of the browser's request. */
  headers?: Record<string, string> | null;
  /** The size according to the browser, for display only; -1: unknown. */
  fileSize?: number | null;
  /** The media type according to the browser. If the server sends a web page instead, the download fails. */
  mimeType?: string | null;
  /** The HTTP method; `null`: GET. */
  method?: string | null;
  /** The body of the HTTP request. */
  body?: RequestBodyInput | null;
  /** The URL of a separate audio track. */
  audioUrl?: string | null;
}

/** What went wrong, as a closed set. */
export type ErrorCode =
  /** Client and server have no protocol version in common. */
  | "protocolIncompatible"
  /** The key or proof is missing or wrong. */
  | "unauthorized"
  /** A value is not allowed. */
  | "invalidArgument"
  /** The thing does not exist. */
  | "notFound"
  /** The thing's state does not allow it. */
  | "conflict"
  /** Not now. */
  | "unavailable"
  /** It took too long. */
  | "timeout"
  /** It was cancelled. */
  | "cancelled"
  /** This build cannot do it. */
  | "unsupported"
  /** A defect. */
  | "internal";

/** More about an application error. */
export interface ErrorData {
  /** The code. */
  code: ErrorCode;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** Which param or key is to blame. */
  field?: string;
  /** The present revision, for a `conflict` about one. */
  revision?: number;
  /** A finer cause. */
  reason?: Reason;
}

/** An event whose data is still text, so that it can be passed on as it is and new kinds do no harm. */
export interface EventBody {
  /** The kind. */
  type: string;
  /** The data, as JSON. */
  data: unknown;
}

/** Result of `daemon.diagnostics.prepareLogExport`. */
export interface ExportResult {
  /** Fetch it with `GET /exports/{id}`, once. */
  exportId: string;
}

/** Params of `agent.task.find`. */
export interface FindTasksParams {
  /** Ids, or their first characters. */
  prefixes: string[];
}

/** Result of `agent.task.find`. */
export interface FoundTasks {
  /** The ids that begin so, at most [`FoundTasks::MAX_PER_PREFIX`] for each prefix. */
  taskIds: string[];
}

/** A subdirectory. */
export interface FsEntry {
  /** Its name. */
  name: string;
  /** Its path. */
  path: string;
}

/** Params of `daemon.fs.list`. */
export interface FsListParams {
  /** The directory; empty: the default directory. */
  path?: string;
}

/** Result of `daemon.fs.list`. */
export interface FsListResult {
  /** The directory that was listed. */
  path: string;
  /** The parent directory; `null` at the root. */
  parent: string | null;
  /** The subdirectories, sorted by name. */
  entries: FsEntry[];
  /** Whether the list is incomplete because there are too many. */
  truncated: boolean;
}

/** Params of `agent.gateway.patch`: all of it or nothing. */
export interface GatewayPatch {
  /** See [`GatewayStatusDto`]. */
  enabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  takeoverEnabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  jsonrpcEnabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  apiEnabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  mcpEnabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  corsEnabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  lanEnabled?: boolean | null;
  /** See [`GatewayStatusDto`]. */
  linkEnabled?: boolean | null;
  /** 1024 to 65535. */
  port?: number | null;
  /** The access key; empty clears it. */
  userToken?: string | null;
  /** Make a new access key. */
  regenerateUserToken?: boolean | null;
}

/** The agent's switches as clients see them. */
export interface GatewayStatusDto {
  /** Anybody is served. Off: only the commands of the service's own user, over loopback. */
  enabled: boolean;
  /** Scripts may hand over downloads. */
  takeoverEnabled: boolean;
  /** aria2 clients are served. */
  jsonrpcEnabled: boolean;
  /** The management API is served. */
  apiEnabled: boolean;
  /** AI clients are served. */
  mcpEnabled: boolean;
  /** Any web page may call. */
  corsEnabled: boolean;
  /** Paired devices may call, and new ones may be paired. */
  linkEnabled: boolean;
  /** Whether there is an access key. */
  userTokenConfigured: boolean;
  /** The port: on a desktop the stored one, on a server the one that it listens on. */
  port: number;
  /** Whether the port can be set here. */
  portEditable: boolean;
  /** Other devices may connect. */
  lanEnabled: boolean;
  /** Port or network settings take effect at the next start. */
  restartRequired: boolean;
}

/** Params of `daemon.group.delete`. */
export interface GroupDeleteParams {
  /** The group. */
  groupId: string;
  /** Delete the finished files too, if the tasks made them. */
  deleteFiles?: boolean;
}

/** A group as clients see it. */
export interface GroupDto {
  /** The group's id. */
  groupId: string;
  /** The group's name. */
  name: string;
  /** The URL that its tasks were created from. */
  sourceUrl: string;
  /** The directory of its tasks. */
  saveDir: string;
  /** The time of creation in Unix seconds. */
  createdAt: string;
  /** What the list that it was made from leaves out. */
  leftOut?: LeftOutDto[];
}

/** Names a group. */
export interface GroupIdParams {
  /** The group. */
  groupId: string;
}

/** An item of a preview that becomes a task. */
export interface GroupItemDto {
  /** `id@variant` of the preview's item; without a variant `id@`, or `id` if it contains no `@`. */
  resolverItem?: string;
  /** The file name. */
  fileName?: string;
  /** The directory, relative to the group's. */
  relPath?: string;
  /** The size in bytes that the plugin tells; 0: unknown. A file of another size is refused, so a size with
   * `sizeFromServer` is better left out: the file may have changed since. */
  size?: number;
  /** The expected checksum: that of the preview's item or variant; empty: unknown. */
  checksum?: string;
}

/** Params of `system.hello`. */
export interface HelloParams {
  /** Who calls. */
  clientName: string;
  /** Of which version. */
  clientVersion: string;
  /** The oldest protocol it speaks. */
  minProtocolVersion: number;
  /** The newest protocol it speaks. */
  maxProtocolVersion: number;
  /** Whom it wants to talk to. */
  requestedRole: Role;
  /** What it can do beyond the version: see [`crate::handshake::capability`]. */
  capabilities?: string[];
}

/** Result of `system.hello`. */
export interface HelloResult {
  /** Who answers. */
  role: Role;
  /** Its name. */
  serviceName: string;
  /** Its version. */
  serviceVersion: string;
  /** The protocol of this connection. */
  protocolVersion: number;
  /** Names this start of the service. */
  instanceId: string;
  /** What it can do beyond the version. */
  capabilities: string[];
}

/** A development folder on this machine. */
export interface InstallPluginDevRequest {
  /** The absolute path of the folder. */
  dirPath: string;
}

/** Params of `daemon.plugin.installFile`: a ZIP on the service's own machine. */
export interface InstallPluginFileParams {
  /** The absolute path of the file. */
  path: string;
}

/** Params of `daemon.plugin.install`: a ZIP that was uploaded as a blob. */
export interface InstallPluginParams {
  /** The blob. */
  blobId: string;
}

/** The result of an installation. */
export interface InstalledPlugin {
  /** The plugin. */
  identity: string;
  /** The version. */
  version: string;
  /** Programs that it uses and that are not installed. */
  missingComponents: string[];
  /** The digest of the permissions that the user must agree to before this version becomes active. */
  pendingConsent?: string;
  /** Its origin: `file`, `development`, `bundled`, or the id of a market source. */
  source: string;
  /** The fingerprint of the author's signing key. */
  signedBy?: string;
}

/** Something that a list of files leaves out. */
export interface LeftOutDto {
  /** Why: `unreadable` (a folder could not be read), `tooManyFiles`, `tooManyFolders` or `tooDeep`. */
  kind: string;
  /** The folder; empty if it is several or the list itself. */
  name: string;
  /** How many files or folders; 0: unknown. */
  count: number;
}

/** Something that a list of files leaves out. */
export interface LeftOutDtoInput {
  /** Why: `unreadable` (a folder could not be read), `tooManyFiles`, `tooManyFolders` or `tooDeep`. */
  kind?: string;
  /** The folder; empty if it is several or the list itself. */
  name?: string;
  /** How many files or folders; 0: unknown. */
  count?: number;
}

/** Params of `agent.link.probe`. */
export interface LinkAddressParams {
  /** `host`, `host:port`, or `http://host[:port]`. */
  address: string;
}

/** A paired device. */
export interface LinkDeviceInfo {
  /** SHA-256 of its public key, 64 hexadecimal digits. */
  fingerprint: string;
  /** The name that it gives itself. */
  name: string;
  /** `linux`, `macos`, `windows`, `server`, or another word of its own. */
  platform?: string;
  /** Its version. */
  appVersion?: string;
  /** Whether it answered when it was last asked. */
  online: boolean;
  /** When it was paired, in Unix seconds. */
  pairedAt: number;
  /** When it last answered or called, in Unix seconds. */
  lastSeenAt: number;
  /** Its default download directory. */
  defaultSaveDir?: string;
  /** `posix` or `windows`. */
  pathStyle?: string;
  /** Whether downloads that it sends are taken. */
  acceptsTasks: boolean;
  /** Whether URLs that it sends may lead to private addresses. */
  allowPrivate: boolean;
  /** How many downloads of it are taken within 24 hours. */
  dailyTasks: number;
  /** How many were taken within the last 24 hours. */
  tasksToday: number;
  /** Downloads that wait for it. */
  queued: number;
}

/** Params of methods that name one device. */
export interface LinkDeviceParams {
  /** The device. */
  fingerprint: string;
}

/** A download for another device. */
export interface LinkDeviceTaskRequest {
  /** An `http`, `https`, `ftp`, `sftp` or `magnet` URL of at most 8,192 characters. If a plugin claims it, it is resolved
   * there. */
  url?: string;
  /** A directory of that device; empty: its default one. */
  saveDir?: string;
  /** The file name; empty: the server's, else the URL's. */
  fileName?: string;
  /** Extra request headers. Sent only with `shareSecrets`. */
  headers?: Record<string, string> | null;
  /** The `Cookie` header. Sent only with `shareSecrets`. */
  cookies?: string;
  /** The expected checksum, as `algorithm=hex`. */
  checksum?: string;
  /** The sender agrees that `headers` and `cookies`, which may hold logins, are handed to the other device. */
  shareSecrets?: boolean;
}

/** A device nearby that is not paired. */
export interface LinkDiscoveredPeer {
  /** Its fingerprint, as it says itself: unproved until it is paired. */
  fingerprint?: string;
  /** The name that it gives itself. */
  name: string;
  /** Its platform. */
  platform?: string;
  /** Its address. */
  host: string;
  /** Its port. */
  port: number;
  /** Its version. */
  appVersion?: string;
  /** How it was found. */
  source: LinkPeerSource;
}

/** Params of `agent.link.discovery.set`. */
export interface LinkDiscoveryParams {
  /** Search, or stop searching. */
  enabled: boolean;
}

/** Params of `agent.link.dispatch`. */
export type LinkDispatchParams = LinkDeviceTaskRequest & {
  /** The device. */
  fingerprint?: string;
};

/** Result of `agent.link.dispatch`: one of the two. */
export type LinkDispatched =
  /** The other device has created the task. */
  | {
  /** Its id there. */
  taskId: string;
  }
  /** It waits in the outbox. */
  | LinkQueued;

/** A download in the outbox. Its headers and cookies are not shown. */
export interface LinkOutboxEntry {
  /** Its id. */
  id: string;
  /** The device that it is for. */
  fingerprint: string;
  /** That device's name. */
  deviceName: string;
  /** The URL, without user name and password. */
  url: string;
  /** The file name; empty: the server's. */
  fileName: string;
  /** When it was added, in Unix seconds. */
  createdAt: number;
  /** When it is given up, in Unix seconds. */
  expiresAt: number;
  /** Attempts so far. */
  attempts: number;
  /** Why the last attempt failed; empty: there was none yet. */
  lastError: string;
  /** Why the other device refused it; it is then not sent again. Empty: it waits. */
  error: string;
}

/** Params of `agent.link.outboxRemove`. */
export interface LinkOutboxParams {
  /** Of the entry. */
  id: string;
}

/** Answers a device that asks to be paired. */
export interface LinkPairApproveRequest {
  /** From the request. */
  sessionId: string;
  /** Whether both devices show the same digits. */
  accept: boolean;
}

/** Params of `agent.link.pairBegin`. */
export interface LinkPairBeginParams {
  /** `host`, `host:port`, or `http://host[:port]`. */
  address: string;
  /** The six digits that the other device shows. */
  code: string;
}

/** A pairing that waits until this side's user has compared the digits. */
export interface LinkPairBeginResponse {
  /** For `finish`. */
  token: string;
  /** Six digits, to be compared with those that the other device shows. */
  sas: string;
  /** The other device's name. */
  peerName: string;
  /** The other device's fingerprint. */
  peerFingerprint: string;
}

/** Ends a pairing that began on this side. */
export interface LinkPairFinishRequest {
  /** From `begin`. */
  token: string;
  /** Whether both devices show the same digits. */
  accept: boolean;
}

/** The end of a pairing that began on this side. */
export interface LinkPairFinishResponse {
  /** Whether both sides agreed. */
  paired: boolean;
  /** The device, if they did. */
  device?: LinkDeviceInfo;
}

/** Result of `agent.link.pairingCode`. */
export interface LinkPairingCode {
  /** Six digits, for one pairing. */
  code: string;
  /** Until when it can be used. */
  expiresAtUnixMs: number;
  /** Where this device can be reached, as `address:port`; empty if only this machine can connect. */
  addresses: string[];
  /** This device's fingerprint. */
  fingerprint: string;
  /** This device's name. */
  deviceName: string;
}

/** A device that asks to be paired. */
export interface LinkPairingRequestDto {
  /** For the answer. */
  sessionId: string;
  /** Six digits, to be compared with those that the other device shows. */
  sas: string;
  /** The other device's name. */
  peerName: string;
  /** The other device's platform. */
  peerPlatform?: string;
  /** The other device's fingerprint. */
  peerFingerprint: string;
  /** Until when it can be answered. */
  expiresAtUnixMs: number;
}

/** Where an address of a device is from. */
export type LinkPeerSource =
  /** It announces itself. */
  | "mdns"
  /** A user gave the address. */
  | "manual";

/** A download that waits until its device answers. */
export interface LinkQueued {
  /** Always true. */
  queued: boolean;
  /** Its id in the outbox. */
  id: string;
}

/** A stored value of the device link. Only agent and daemon exchange these. */
export interface LinkRow {
  /** What it is. */
  kind: string;
  /** Which one. */
  key: string;
  /** The value; `None` removes the row. */
  value?: string;
  /** From when on it is not needed, in Unix seconds. */
  until?: number;
}

/** A stored value of the device link. Only agent and daemon exchange these. */
export interface LinkRowInput {
  /** What it is. */
  kind: string;
  /** Which one. */
  key: string;
  /** The value; `None` removes the row. */
  value?: string | null;
  /** From when on it is not needed, in Unix seconds. */
  until?: number | null;
}

/** Result of `daemon.link.load`, and params of `daemon.link.commit`: all of it or nothing. */
export interface LinkRows {
  /** The rows. */
  rows: LinkRow[];
  /** Rows that are not needed at this time are removed, in Unix seconds. */
  now: number;
}

/** Result of `daemon.link.load`, and params of `daemon.link.commit`: all of it or nothing. */
export interface LinkRowsInput {
  /** The rows. */
  rows?: LinkRowInput[];
  /** Rows that are not needed at this time are removed, in Unix seconds. */
  now?: number;
}

/** Params of `agent.link.update`. */
export interface LinkUpdateParams {
  /** The device. */
  fingerprint?: string;
  /** Take downloads that it sends. */
  acceptsTasks?: boolean | null;
  /** Let URLs that it sends lead to private addresses. */
  allowPrivate?: boolean | null;
  /** Take at most this many downloads of it within 24 hours, up to 4,096. */
  dailyTasks?: number | null;
}

/** An account that somebody is logged in to. */
export interface LoginAccountDto {
  /** Identifies it at its site. */
  id: string;
  /** The display name. */
  name: string;
  /** The time of the login in Unix milliseconds. */
  since: number;
  /** Whether the site has ended its session: another login is needed. */
  expired: boolean;
  /** The site, for plugins of several sites. */
  site?: string;
}

/** A field of a screen. */
export interface LoginFieldDto {
  /** Its key in `values`. */
  key: string;
  /** Its name for the user. */
  label: string;
  /** Whether what is typed must not be shown. The plugin gets its name. What is typed into another field, the plugin reads:
   * tell users so. */
  secret: boolean;
}

/** A login that a task waits for. */
export interface LoginNeedDto {
  /** The plugin. */
  identity: string;
  /** The slot of its manifest. */
  slot: string;
  /** The account; empty: any of the slot. */
  account?: string;
}

/** A QR code. */
export interface LoginQrDto {
  /** Its content, to be drawn. */
  payload: string;
  /** How long it was valid when it was made. */
  expiresInSeconds: number;
  /** What to do with it. */
  hint: string;
}

/** A screen of a login. The plugin fills it in, the service limits what it can contain. */
export interface LoginScreenDto {
  /** A text for the user. */
  message: string;
  /** A QR code for the site's own app. */
  qr?: LoginQrDto;
  /** What the user fills in; all of them are answered together. */
  fields: LoginFieldDto[];
  /** A page for the user's browser. */
  openUrl?: LoginUrlDto;
  /** How long to wait before the next `poll`; absent if the screen waits for the user alone. */
  pollAfterMs?: number;
}

/** An account that a plugin can have. */
export interface LoginSlotDto {
  /** The id in the plugin's manifest, and the `authRef` of its account. */
  slot: string;
  /** The display name. */
  title: string;
  /** How to log in: `qr`, `password`, `cookie`, `browser`. Empty if the plugin does not have this slot any more. */
  modes: string[];
  /** The account; `null` if nobody is logged in. */
  account: LoginAccountDto | null;
}

/** A page for the user's browser. */
export interface LoginUrlDto {
  /** Its address. */
  url: string;
  /** What the address begins with that the browser shows at the end. That address is the answer, with the key `url`. */
  redirectPrefix?: string;
}

/** A plugin offered by a market source: the newest version that this host can install, else the newest one. */
export interface MarketEntryDto {
  /** `name@author`. */
  pluginId: string;
  /** The version. */
  version: string;
  /** The sequence number of the version at the source; 0 for bundled plugins. */
  sequence: number;
  /** The digest of the package, as `sha256:hex`. */
  contentHash: string;
  /** The minimum version of the host; empty: any. */
  minAppVersion: string;
  /** The display name. */
  name: string;
  /** The description. */
  description: string;
  /** The author's name. */
  author: string;
  /** The URL of the home page. */
  homepage: string;
  /** Locations of the package: paths relative to the source, or https URLs. */
  mirrors: string[];
  /** The time of publication (RFC 3339); empty for bundled plugins. */
  publishTime: string;
  /** Why this version was withdrawn; empty if it can be installed. */
  yanked: string;
  /** Search keywords. */
  tags: string[];
  /** The permissions that it requests. */
  permissions: string[];
  /** The id of the source; `bundled` for plugins that are part of the service. */
  source: string;
  /** The fingerprint of the author's signing key; `null` for bundled plugins. */
  signedBy?: string;
  /** The installed version. */
  installed?: MarketInstalledDto;
  /** Whether this version is an update of the installed one. It may need the user's consent to new permissions. */
  updateAvailable: boolean;
  /** The time of the automatic update in Unix milliseconds. Updates that request more permissions are not automatic. */
  updatesAtMs?: number;
  /** Whether the index has expired, so that newer entries may be missing. Nothing is installed from it then. */
  stale: boolean;
  /** The revocation of the installed version, or of this one if none is installed. */
  revoked?: RevocationDto;
}

/** Params of `daemon.plugin.marketInstall`, and the body of `POST /market/install`: installs or updates. */
export interface MarketInstallRequest {
  /** `name@author`. */
  pluginId: string;
  /** The version to install; the call fails if the source offers another one. */
  version?: string | null;
  /** The id of the source; required if several offer the plugin. */
  source?: string | null;
  /** The permissions that the user was shown and agrees to. The version runs at once if it asks for no others and its
   * author is the one of the version before; else it waits for consent. */
  agreed?: string[] | null;
}

/** The installed version of a plugin of the market. */
export interface MarketInstalledDto {
  /** The active version, or the one that waits for consent if none is active. */
  version: string;
  /** Whether automatic updates are off for this plugin. */
  pinned: boolean;
}

/** Params of `daemon.plugin.marketRefresh`: fetches the indexes now. */
export interface MarketRefreshRequest {
  /** The id of the source; `null`: all sources. */
  source?: string | null;
}

/** Params of `daemon.plugin.marketSourceAdd`. Without the fingerprint nothing is added; the answer contains it. */
export interface MarketSourceAddRequest {
  /** `svc://market?url=…&key=…`. */
  link: string;
  /** The fingerprint that the user has confirmed. */
  fingerprint?: string | null;
}

/** The content of a link to a market source, and the source once it was added. */
export interface MarketSourceAddResponse {
  /** The URL of the source, without user name and password. */
  url: string;
  /** The fingerprint of its key. Users compare it with the one that the maintainer publishes. */
  fingerprint: string;
  /** The source; `null` if the call had no fingerprint. */
  source?: MarketSourceDto;
}

/** A market source. */
export interface MarketSourceDto {
  /** The permanent id of the source; `bundled` for the plugins that are part of the service. */
  id: string;
  /** The display name. */
  name: string;
  /** The URL without user name and password; empty for bundled plugins. */
  url: string;
  /** The fingerprint of the key that the user accepted; empty for bundled plugins. */
  fingerprint: string;
  /** `fresh`; `failing`: the last refresh failed, the index is still valid; `stale`: the index has expired, and
   * nothing is installed or updated from it. */
  status: string;
  /** The number of plugins. */
  plugins: number;
  /** The time when the user added it, in Unix milliseconds. */
  addedAtMs?: number;
  /** The time of the last successful refresh in Unix milliseconds. */
  refreshedAtMs?: number;
  /** The expiry of the index in Unix milliseconds. */
  validUntilMs?: number;
  /** Why the last refresh failed, as text for users. */
  error?: string;
  /** The code of that failure: `marketUnreachable`, `marketIndexInvalid` or `marketIndexRollback`. */
  errorReason?: string;
}

/** Params of `daemon.plugin.marketSourceRemove`. */
export interface MarketSourceParams {
  /** The id of the source. */
  source: string;
}

/** Params of `daemon.queue.moveTask`. */
export interface MoveTaskParams {
  /** The task. */
  taskId: string;
  /** The queue; empty: the default queue. */
  queueId?: string;
}

/** `{ok: true}`. */
export interface OkResult {
  /** Always true: what failed is an error. */
  ok: boolean;
}

/** `agent.task.open`: opens a finished file on the service's own desktop. */
export interface OpenTaskParams {
  /** The task. */
  taskId: string;
  /** Shows the file in its directory instead of opening it. */
  reveal?: boolean;
}

/** Result of `agent.page.ticket`: put behind the page's address as `#open=`, the page exchanges it for a session with
 * `POST /api/web/session`. */
export interface OpenTicket {
  /** Good once. */
  ticket: string;
  /** How long it is good. */
  expiresInSecs: number;
}

/** An optional host of a plugin. */
export interface OptionalHostDto {
  /** The host: `https://name` or `https://*.name`. */
  host: string;
  /** `always` or `never`; empty before the user has chosen, with the effect of `never`. */
  choice: string;
}

/** A download that waits for the user's decision. Contains no values of cookies and headers. */
export interface PendingCaptureDto {
  /** The id of the pending capture. */
  transactionId: string;
  /** The URLs, separated by line breaks. */
  url: string;
  /** The file name that the browser suggests. */
  fileName: string;
  /** The time of submission in Unix milliseconds. */
  createdAtUnixMs: number;
  /** The size according to the browser; 0: unknown. */
  fileSize: number;
  /** The URL of the page that contains the link. */
  referrer: string;
  /** `link:` and the fingerprint of the paired device that sent it, or the extension that did so without a key; empty: another
   * sender. */
  createdBy?: string;
  /** The directory; empty: the default one. */
  saveDir: string;
  /** Whether it was submitted with cookies. */
  hasCookies: boolean;
  /** The names of the submitted headers. */
  headerNames: string[];
  /** The HTTP method; empty: GET. */
  method?: string;
  /** The beginning of the request's body as text; empty: none. */
  body?: string;
}

/** A version that waits for consent. */
export interface PendingVersionDto {
  /** The version. */
  version: string;
  /** The permissions that the user has not granted yet. */
  added: string[];
  /** The fingerprint of the author's signing key. */
  signedBy?: string;
  /** Whether it may be by another author than the active version. With the consent, the new author gets all grants
   * and secrets of the plugin. */
  authorChanged: boolean;
  /** The development folder to load the plugin from. With the consent, any future content of the folder gets all
   * grants and secrets of the plugin, and every permission that it will request. */
  folder?: string;
  /** The digest of all of these; the consent must repeat it. */
  digest: string;
}

/** What a request about a login does. */
export type PluginAuthAction =
  /** Begins a login and answers with its first screen. */
  | "begin"
  /** Answers with the present screen, after asking the site if that is due. */
  | "poll"
  /** Gives what the user filled in. */
  | "answer"
  /** Cancels a login. */
  | "cancel"
  /** Ends the session of an account at its site and deletes the account. Works for a disabled plugin, too. */
  | "logout"
  /** With a session, answers with the present screen and never asks the site; else with the accounts of the plugin. */
  | "status";

/** Params of `daemon.plugin.auth`. */
export interface PluginAuthRequest {
  /** `name@author`. Over REST it is in the path, and not read from here. */
  identity?: string | null;
  /** What to do. */
  action: PluginAuthAction;
  /** The slot of the account, from the list of accounts. May be left out if the plugin has one slot. */
  slot?: string | null;
  /** How to log in: `qr`, `password`, `cookie` or `browser`; the slot's first one if left out. */
  mode?: string | null;
  /** The login, as `begin` named it. */
  sessionId?: string | null;
  /** The site to log in to, for plugins of several sites: a URL, or a host for `https`. */
  site?: string | null;
  /** Another name of `slot`: what an earlier answer called `authRef`. */
  authRef?: string | null;
  /** The answer to a screen that asks for one thing; `poll` with it is taken as `answer`. */
  input?: string | null;
  /** The answers by the keys of the screen's fields. The address that a browser shows at the end has the key `url`. */
  values?: Record<string, string> | null;
}

/** The state of a login. Contains no credentials. */
export interface PluginAuthResponse {
  /** How it is going. */
  status: PluginAuthStatus;
  /** Names the login in further requests; empty if the request was about none. */
  sessionId: string;
  /** The content of the QR code or the URL to open, for clients that read no `screen`. */
  challenge: string | null;
  /** `qrcode` or `url`. */
  challengeType: string | null;
  /** What to tell the user. */
  message: string;
  /** With `success`, the slot of the account that can be used. */
  authRef: string | null;
  /** What to show to the user; absent once the login is over. */
  screen?: LoginScreenDto;
  /** The accounts that the plugin can have, and those that it has. Only `status` without a session answers with them. */
  accounts?: LoginSlotDto[];
}

/** How a login is going. */
export type PluginAuthStatus =
  /** The user or the site is to act. */
  | "pending"
  /** The account can be used. */
  | "success"
  /** The login is over without an account, or there is no account that can be used; `message` says why. */
  | "error";

/** The cost of a call of a plugin. */
export interface PluginCallDto {
  /** The number of the call in log lines and requests. */
  id: number;
  /** `resolve`, `more`, `linkFor` or `preview`. */
  action: string;
  /** `ok`, or the code of its failure. */
  code: string;
  /** Time to create the instance. */
  instantiateMicros: number;
  /** Processor time. */
  cpuMs: number;
  /** Total time. */
  wallMs: number;
  /** Requests that it sent. */
  requests: number;
  /** Bytes received. */
  receivedBytes: number;
  /** Peak memory. */
  peakMemoryBytes: number;
  /** Log lines that were dropped because there were too many. */
  lostLines: number;
}

/** An installed plugin. Contains no credentials. */
export interface PluginDto {
  /** `name@author`. */
  identity: string;
  /** The display name. */
  name: string;
  /** The version; empty if the manifest could not be read. */
  version: string;
  /** The description. */
  description: string;
  /** The URL of the home page. */
  homepage: string;
  /** Whether it is enabled. */
  enabled: boolean;
  /** Whether it is loaded from a development folder. */
  devMode: boolean;
  /** `None`, `Manual`, `CircuitBreaker` after too many faults, or `Revoked`. */
  disabledReason: DisabledReason;
  /** The definitions of its settings. */
  settings: SettingFieldDto[];
  /** The values of its settings, with defaults and without secrets. */
  settingsValues: Record<string, string>;
  /** Its permissions, derived from the imports of its code. */
  permissions: string[];
  /** Optional hosts, with the user's choice for each. */
  optionalHosts?: OptionalHostDto[];
  /** Whether it supports logging in to its site. */
  authSupported: boolean;
  /** Its identity, if it reads feeds: a subscription's `providerId`. */
  subscriptionProviderIds: string[];
  /** The definitions of the fields of a subscription's `providerConfig`. */
  subscriptionFields?: SettingFieldDto[];
  /** `Loaded`; `Loading`, after which it is `Loaded` or `Failed`; `PendingConsent`; or `Revoked`. */
  loadStatus: string;
  /** Why loading failed. */
  loadError: string;
  /** SHA-256 of the active code in hexadecimal; empty if none is active. */
  codeDigest: string;
  /** Why the current content of the development folder could not be loaded. The previous version stays active. */
  devError?: DevErrorDto;
  /** A version that waits for consent. */
  pending?: PendingVersionDto;
  /** Its roles: `resolver`, `preview`, … */
  capabilities: string[];
  /** Its origin: `file`, `development`, `bundled`, or the id of a market source. */
  source: string;
  /** The fingerprint of the author's signing key. */
  signedBy?: string;
  /** Whether automatic updates are off for this plugin. */
  pinned: boolean;
  /** The previous version, if a rollback is possible. */
  previousVersion?: string;
  /** The revocation of the active version, if its market source revoked it. */
  revoked?: RevocationDto;
  /** How its calls went since the service started. */
  health: PluginHealthDto;
}

/** An event in the journal of a plugin. */
export interface PluginEventDto {
  /** The time in Unix milliseconds. */
  atMs: number;
  /** `installed`, `loaded`, `called`, `denied`, … */
  event: string;
  /** Details, as text for users. */
  detail: string;
  /** The cost of a call; `null` for other events. */
  call?: PluginCallDto;
}

/** How the calls of a plugin went. */
export interface PluginHealthDto {
  /** `ok`; `degraded`: it failed several times by its own fault, and calls pause; or `siteBroken`: several pages of its
   * site could not be read, so the site seems to have changed. */
  state: string;
  /** Since when, in Unix milliseconds; 0: always. */
  sinceMs: number;
  /** What to do about it, as text for users; empty if it is well. */
  advice?: string;
}

/** The journal of a plugin since the start of the service, oldest entries first. Its length is limited. */
export interface PluginJournalDto {
  /** Events and calls. */
  events: PluginEventDto[];
  /** Log lines. */
  lines: PluginLineDto[];
  /** Requests that it sent. */
  requests: PluginRequestDto[];
}

/** A log line of a plugin. */
export interface PluginLineDto {
  /** The time in Unix milliseconds. */
  atMs: number;
  /** The number of the call. */
  call: number;
  /** `trace`, `debug`, `info`, `warn` or `error`. */
  level: string;
  /** The message, with control characters escaped. */
  text: string;
}

/** Names a plugin. */
export interface PluginParams {
  /** `name@author`. */
  identity: string;
}

/** A request that a plugin sent, without query, headers and body. */
export interface PluginRequestDto {
  /** The time of the response in Unix milliseconds. */
  atMs: number;
  /** The number of the call. */
  call: number;
  /** The method. */
  method: string;
  /** The URL's scheme, host and path. */
  address: string;
  /** The status of the response; `null` without one. */
  status: number | null;
  /** Bytes of the response. */
  receivedBytes: number;
  /** Duration of the request. */
  elapsedMs: number;
}

/** A port that a router opened. */
export interface PortMappingDto {
  /** The router's port. */
  externalPort: number | null;
  /** The router's public address; empty: it did not say. */
  externalAddress: string;
  /** Why it opened none; empty: it did. */
  error: string;
}

/** Result of `daemon.post.clear`. */
export interface PostCleared {
  /** Jobs that were forgotten. */
  count: number;
}

/** A container of audio and video. */
export type PostContainer =
  | "mp4"
  | "matroska"
  | "webM";

/** A chain at work on the files of a task or group. */
export interface PostJobDto {
  /** Its number. */
  jobId: number;
  /** The task whose end began it. */
  taskId: string;
  /** Its group, if the job works on the files of the whole group. */
  groupId: string;
  /** What the current step works on; of a job that is done, its results. */
  files: string[];
  /** All steps. */
  steps: PostStep[];
  /** The index of the current one. */
  step: number;
  /** Where it is. */
  state: PostState;
  /** How far the current step is, in thousandths, if that is known. */
  progress: number | null;
  /** Why it failed, which files it waits for, or what of its work was left undone. */
  message: string;
  /** When it was created, in milliseconds since 1970. */
  createdAtMs: number;
}

/** Names a job. */
export interface PostJobParams {
  /** The job. */
  jobId: number;
}

/** Result of `daemon.post.list`. */
export interface PostJobs {
  /** All jobs, newest first. */
  jobs: PostJobDto[];
  /** How many passwords are known for archives. */
  passwords: number;
}

/** Params of `daemon.post.setPasswords`: replaces all. */
export interface PostPasswords {
  /** Tried in this order on archives that are encrypted; at most 100. */
  passwords?: string[];
}

/** Params of `daemon.post.start`. */
export interface PostStartRequest {
  /** A finished task; of an archive in several files, any of them. */
  taskId?: string;
  /** Instead of a task: all files of a group, whose tasks are all finished. */
  groupId?: string;
  /** The steps; none: as configured for the task's queue. */
  steps?: PostStepInput[];
  /** Passwords for this archive, tried before those that the service knows. */
  passwords?: string[];
}

/** Result of `daemon.post.start`. */
export interface PostStarted {
  /** The new job. */
  jobId: number;
}

/** Where a job is. */
export type PostState =
  /** For its turn. */
  | "waiting"
  /** A step runs. */
  | "running"
  /** All steps were done. */
  | "done"
  /** A step failed. What it worked on is as it was. */
  | "failed"
  /** By the user. */
  | "cancelled";

/** A step of a chain. */
export type PostStep =
  /** Unpacks an archive, with all of its volumes, into a new directory. */
  | ({ kind: "unpack" } & {
  /** Whether the archive is deleted when its content is there and verified. */
  deleteArchive: boolean;
  /** The directory that the new one is made in; empty: that of the archive. */
  into?: string;
  })
  /** Moves each file after a template, relative to the task's directory. */
  | ({ kind: "rename" } & {
  /** With `{name}`, `{extension}`, `{title}`, `{host}` and `{date}`. */
  template: string;
  })
  /** Writes a checksum file beside each file. */
  | ({ kind: "checksum" } & {
  /** `sha-256`, `sha-512`, `sha-1`, `md5`, `crc32` or `blake3`. */
  algorithms: string[];
  })
  /** Joins the two files of a group, a picture track and a sound track, with the user's ffmpeg. */
  | ({ kind: "mux" } & {
  /** The container. */
  container: PostContainer;
  })
  /** Puts the tracks of a file into another container, with the user's ffmpeg. */
  | ({ kind: "remux" } & {
  /** The container. */
  container: PostContainer;
  })
  /** Calls a plugin. */
  | ({ kind: "plugin" } & {
  /** The plugin. */
  identity: string;
  });

/** A step of a chain. */
export type PostStepInput =
  /** Unpacks an archive, with all of its volumes, into a new directory. */
  | ({ kind: "unpack" } & {
  /** Whether the archive is deleted when its content is there and verified. */
  deleteArchive?: boolean;
  /** The directory that the new one is made in; empty: that of the archive. */
  into?: string;
  })
  /** Moves each file after a template, relative to the task's directory. */
  | ({ kind: "rename" } & {
  /** With `{name}`, `{extension}`, `{title}`, `{host}` and `{date}`. */
  template: string;
  })
  /** Writes a checksum file beside each file. */
  | ({ kind: "checksum" } & {
  /** `sha-256`, `sha-512`, `sha-1`, `md5`, `crc32` or `blake3`. */
  algorithms: string[];
  })
  /** Joins the two files of a group, a picture track and a sound track, with the user's ffmpeg. */
  | ({ kind: "mux" } & {
  /** The container. */
  container: PostContainer;
  })
  /** Puts the tracks of a file into another container, with the user's ffmpeg. */
  | ({ kind: "remux" } & {
  /** The container. */
  container: PostContainer;
  })
  /** Calls a plugin. */
  | ({ kind: "plugin" } & {
  /** The plugin. */
  identity: string;
  });

/** The preferences of the user interface. */
export interface Preferences {
  /** Grows with every change. */
  revision: number;
  /** The preferences. */
  values: Record<string, unknown>;
}

/** Params of `agent.preferences.patch`. */
export interface PreferencesPatch {
  /** The preferences that change. */
  values: Record<string, unknown>;
  /** Whether they are to be shared between devices. */
  sync?: boolean;
}

/** Result of `agent.preferences.patch`. */
export interface PreferencesPatched {
  /** Always true. */
  ok: boolean;
  /** Grows with every change. */
  revision: number;
}

/** A file of a preview. */
export interface PreviewItemDto {
  /** The plugin's id for it. */
  id: string;
  /** Its name. */
  name: string;
  /** The directory, relative to the list. */
  path: string;
  /** `file`, `folder`, `videoStream`, `audioStream`, `subtitle` or `image`; a folder is not downloaded. */
  kind: string;
  /** Whether it is downloaded unless the user selects otherwise. */
  selected: boolean;
  /** The size in bytes; 0: unknown. */
  size: number;
  /** Whether the server of the file told the size when it was asked, because the plugin does not tell it. */
  sizeFromServer?: boolean;
  /** The expected checksum, as `algorithm=hex`; empty: unknown. */
  checksum?: string;
  /** The available qualities and formats. */
  variants: PreviewVariantDto[];
}

/** A quality or format of a file. */
export interface PreviewVariantDto {
  /** The plugin's id for it. */
  id: string;
  /** The display name. */
  label: string;
  /** The size in bytes; 0: unknown. */
  size: number;
  /** Whether the server of the file told the size when it was asked, because the plugin does not tell it. */
  sizeFromServer?: boolean;
  /** The expected checksum, as `algorithm=hex`; empty: unknown. */
  checksum?: string;
}

/** Params of `system.auth.prove`. */
export interface ProveParams {
  /** The agent's proof. */
  clientProof: string;
}

/** Result of `system.auth.prove`. */
export interface ProveResult {
  /** Always true: what failed is an error. */
  authenticated: boolean;
}

/** Params of `daemon.config.proxyTest`. */
export interface ProxyTestParams {
  /** `http`, `https`, `socks4` or `socks5`. */
  proxyType?: string;
  /** The host. */
  host?: string;
  /** The port, as text. */
  port?: string;
  /** The user name; empty: none. */
  username?: string;
  /** The password. */
  password?: string;
  /** What is requested through the proxy; empty is a page on the Internet that exists for tests. */
  url?: string;
}

/** Result of `daemon.config.proxyTest`. */
export interface ProxyTestResult {
  /** Milliseconds until the response to the request that went through the proxy. */
  latencyMs: number;
}

/** A queue as clients see it. */
export interface QueueDto {
  /** Its id. */
  queueId: string;
  /** Its name. */
  name: string;
  /** Download limit in KiB per second; 0: none. */
  speedLimitKbps: number;
  /** Upload limit in KiB per second; 0: none. */
  uploadLimitKbps: number;
  /** Maximum number of running tasks; 0: only the global limit applies. */
  maxConcurrent: number;
  /** Directory of its tasks; empty: the global one. */
  defaultSaveDir: string;
  /** Its place. */
  position: number;
  /** Segments of its tasks; 0: as in the settings. */
  defaultSegments: number;
  /** `User-Agent` of its tasks; empty: as in the settings. */
  defaultUserAgent: string;
  /** What follows its downloads; none: as in the setting `post_chain`. */
  postChain?: PostStep[];
  /** Whether the queue is running: a stopped queue starts no tasks. */
  isRunning: boolean;
  /** Whether the schedule is enabled. */
  scheduleEnabled: boolean;
  /** Local time as `HH:MM`; empty: never. */
  scheduleStart: string;
  /** Local time as `HH:MM`; empty: never. */
  scheduleStop: string;
  /** Days as bits, bit 0 for Monday; 127: every day. */
  scheduleDays: number;
}

/** Params of `daemon.queue.create`. */
export interface QueueFields {
  /** Its name. */
  name: string;
  /** Download limit in KiB per second; 0: none. */
  speedLimitKbps?: number;
  /** Upload limit in KiB per second; 0: none. */
  uploadLimitKbps?: number;
  /** Maximum number of running tasks; 0: only the global limit applies. */
  maxConcurrent?: number;
  /** Directory of its tasks; empty: the global one. */
  defaultSaveDir?: string;
  /** Segments of its tasks; 0: as in the settings. */
  defaultSegments?: number;
  /** `User-Agent` of its tasks; empty: as in the settings. */
  defaultUserAgent?: string;
  /** What follows its downloads; none: as in the setting `post_chain`. */
  postChain?: PostStepInput[];
}

/** Names a queue. */
export interface QueueIdParams {
  /** The queue. */
  queueId: string;
}

/** Params of `daemon.task.rename`. */
export interface RenameTaskParams {
  /** The task. */
  taskId: string;
  /** The new name, without separators. */
  fileName: string;
}

/** Params of `daemon.torrent.renameFile`. */
export interface RenameTorrentFileParams {
  /** The task. */
  taskId: string;
  /** The place of the file in the torrent. */
  index: number;
  /** Its new path in the torrent's directory, with `/` between names. */
  path: string;
}

/** Params of `daemon.queue.reorder`. */
export interface ReorderParams {
  /** The queue. */
  queueId: string;
  /** Its tasks in their new order. */
  taskIds: string[];
}

/** The body of an HTTP request. */
export type RequestBody =
  /** `multipart/form-data`. */
  | ({ kind: "formData" } & {
  /** The values of each field. */
  fields: Record<string, string[]>;
  })
  /** `application/x-www-form-urlencoded`, already encoded. */
  | ({ kind: "urlencoded" } & {
  /** The encoded text. */
  raw: string;
  })
  /** Arbitrary bytes. */
  | ({ kind: "raw" } & {
  /** The bytes in base64. */
  bytesB64: string;
  /** The `Content-Type`. */
  contentType?: string;
  });

/** The body of an HTTP request. */
export type RequestBodyInput =
  /** `multipart/form-data`. */
  | ({ kind: "formData" } & {
  /** The values of each field. */
  fields: Record<string, string[]>;
  })
  /** `application/x-www-form-urlencoded`, already encoded. */
  | ({ kind: "urlencoded" } & {
  /** The encoded text. */
  raw: string;
  })
  /** Arbitrary bytes. */
  | ({ kind: "raw" } & {
  /** The bytes in base64. */
  bytesB64: string;
  /** The `Content-Type`. */
  contentType?: string | null;
  });

/** An origin of URLs other than the user, for example a web page. Its URLs may lead only to public addresses and to
 * `userHost`. */
export interface Requester {
  /** The host of the URL that the user entered, which led to these; empty: none. Never taken from the page itself. */
  userHost?: string;
  /** Whether `userHost` may be reached wherever it is, as if the user had entered it: they allowed that for this origin. */
  isHostAllowed?: boolean;
  /** `link:` and the fingerprint of the paired device that sent the task, or the `Origin` of the browser extension that creates the task without an access key; empty: none. The extension
   * may see and change the task. */
  createdBy?: string;
}

/** A request to list the files that a URL leads to. Nothing is stored. */
export interface ResolvePreviewRequest {
  /** The URL. */
  url?: string;
  /** The `Cookie` header. */
  cookies?: string;
  /** The `Referer` header. */
  referrer?: string;
  /** The `User-Agent` header. */
  userAgent?: string;
  /** Extra request headers. */
  extraHeaders?: Record<string, string>;
}

/** The files that a URL leads to. Without items and error no plugin lists it; `message` says how it is downloaded. */
export interface ResolvePreviewResponse {
  /** The title of the list. */
  name: string;
  /** The URL. */
  sourceUrl: string;
  /** The plugin that claims the URL; empty if none does. */
  plugin: string;
  /** Why there is no list, as text for users. */
  error: string;
  /** If there is no list and no error: how the URL would be downloaded, as text for users. */
  message?: string;
  /** Whether the plugin failed because it may not reach one of `grantableHosts`. */
  grantable?: boolean;
  /** Hosts that the plugin was denied and that the user can allow. */
  grantableHosts?: string[];
  /** The files. */
  items: PreviewItemDto[];
  /** What the list leaves out. */
  leftOut?: LeftOutDto[];
  /** The sizes of the files that are selected, as far as they are known, in bytes. */
  totalBytes: number;
  /** How many of the selected files have no known size. */
  unknownSizes: number;
}

/** Result of `agent.gateway.revealToken`. */
export interface RevealedToken {
  /** The access key. */
  userToken: string;
}

/** The revocation of a version. */
export interface RevocationDto {
  /** `deprecated`: there is a replacement; `vulnerable`: cannot be installed; `malicious`: is not run. */
  level: string;
  /** The reason, as text for users. */
  reason: string;
}

/** The role of a service. */
export type Role =
  /** The process that clients talk to. */
  | "agent"
  /** The process that owns the tasks. */
  | "daemon";

/** The `error` of a reply. */
export interface RpcError {
  /** One of [`code`]. */
  code: number;
  /** For the user. */
  message: string;
  /** For programs; only application errors have it. */
  data?: ErrorData;
}

/** A new subscription. */
export interface RssCreatedSource {
  /** Its id. */
  sourceId: string;
}

/** All subscriptions, for another program. */
export interface RssExportResponse {
  /** An OPML document. */
  document: string;
}

/** A feed of an imported list that cannot be subscribed to. */
export interface RssImportFailure {
  /** Its name in the list. */
  name: string;
  /** Its URL in the list, without a password. */
  url: string;
  /** Why. */
  error: string;
}

/** Subscriptions from another program. */
export interface RssImportRequest {
  /** An OPML document. */
  document?: string;
}

/** What came of an import. */
export interface RssImportResponse {
  /** The ids of the new subscriptions, in the order of the document. */
  sourceIds: string[];
  /** How many were subscribed to already. */
  known: number;
  /** The ones that cannot be subscribed to. */
  failed: RssImportFailure[];
}

/** Params of an action on an item. */
export interface RssItemActionParams {
  /** The subscription. */
  sourceId?: string;
  /** The item; without meaning for `readAll`. */
  guid?: string;
  /** `download`, `ignore`, `read` or `readAll`. */
  action?: string;
}

/** An item of a source. */
export interface RssItemDto {
  /** Its source. */
  sourceId: string;
  /** What identifies it within its source. */
  guid: string;
  /** Its title. */
  title: string;
  /** The page about it. */
  link: string;
  /** The file. */
  enclosureUrl: string;
  /** The file's size; 0 is unknown. */
  enclosureLength: number;
  /** When it was published; Unix seconds, 0 is unknown. */
  pubDate: number;
  /** When it was first seen; Unix seconds. */
  fetchedAt: number;
  /** What became of it: 0 new, 1 its task was created, 2 ignored, 3 no rule matches, 4 downloaded before, 5 there when the
   * source was added. */
  status: RssItemStatus;
  /** The task that downloads it, or did until it was deleted; empty until the task exists. */
  taskId: string;
  /** The series and episode that its title names. */
  episodeKey: string;
  /** Why it has its status: `included`, `upgrade`, `not_included`, `excluded`, `too_small`, `too_large`, `quality`,
   * `dup_episode`, `dup_item`, `seed_skipped`, `nothing_to_download`, `too_many` (the source has a thousand new items),
   * `not_started` (the task could not be created, see `detail`), `manual`, `ignored`, `read` or `task_deleted`. */
  reason: string;
  /** Why the task could not be created, for people; it is tried again. Empty unless that is so. */
  detail: string;
}

/** What became of an item. */
export const RssItemStatus = {
  /** New. */
  New: 0,
  /** Downloaded. */
  Downloaded: 1,
  /** Ignored by the user, or its task was deleted. */
  Ignored: 2,
  /** Left by the rules. */
  RuleMiss: 3,
  /** Its episode was downloaded before. */
  DuplicateEpisode: 4,
  /** It was in the feed when the source was added. */
  Seeded: 5,
} as const;
export type RssItemStatus = (typeof RssItemStatus)[keyof typeof RssItemStatus];

/** Data of [`DaemonEvent::RssItemsChanged`]. */
export interface RssItemsChanged {
  /** The subscription. */
  sourceId: string;
  /** Grows with each change. */
  itemRevision: number;
  /** Titles of new downloads, if the subscription notifies of them. */
  notifyTitles: string[];
}

/** A rule of a source. */
export interface RssRuleDto {
  /** Its name, which verdicts show. */
  name: string;
  /** What titles must match; empty is everything. */
  includePattern: string;
  /** What titles must not match; empty is nothing. */
  excludePattern: string;
  /** Patterns are regular expressions. Else they are words: blanks mean and, `|` means or. */
  useRegex: boolean;
  /** The smallest size; 0 is none. */
  sizeMinBytes: number;
  /** The largest size; 0 is none. */
  sizeMaxBytes: number;
  /** The queue of what it takes; empty is the source's. */
  queueId: string;
  /** The directory of what it takes; empty is the source's. */
  saveDir: string;
  /** Directories below it; empty is the source's. */
  dirTemplate: string;
}

/** A rule of a source. */
export interface RssRuleDtoInput {
  /** Its name, which verdicts show. */
  name?: string;
  /** What titles must match; empty is everything. */
  includePattern?: string;
  /** What titles must not match; empty is nothing. */
  excludePattern?: string;
  /** Patterns are regular expressions. Else they are words: blanks mean and, `|` means or. */
  useRegex?: boolean;
  /** The smallest size; 0 is none. */
  sizeMinBytes?: number;
  /** The largest size; 0 is none. */
  sizeMaxBytes?: number;
  /** The queue of what it takes; empty is the source's. */
  queueId?: string;
  /** The directory of what it takes; empty is the source's. */
  saveDir?: string;
  /** Directories below it; empty is the source's. */
  dirTemplate?: string;
}

/** A subscription. Runtime fields are never written by a request. */
export interface RssSourceDto {
  /** Its id. */
  sourceId: string;
  /** The feed, or a web page that names one. */
  url: string;
  /** Its name; empty takes the feed's title. */
  name: string;
  /** It is fetched. */
  enabled: boolean;
  /** New items that its rules take are downloaded. */
  autoDownload: boolean;
  /** Confirms that every new item of the feed is downloaded. A source with `autoDownload` and without an include pattern,
   * of its own or of all its rules, is refused without it. */
  downloadAll: boolean;
  /** Tasks are created paused. */
  startPaused: boolean;
  /** The queue of its tasks; empty is the default one. */
  queueId: string;
  /** The directory of its tasks; empty is the queue's. */
  saveDir: string;
  /** Directories below it, such as `{series}/Season {season}`; may name `{series}`, `{season}`, `{episode}`, `{title}` and
   * `{source}`. A directory with a field that is not known is left out. */
  dirTemplate: string;
  /** Minutes between two fetches; 0 is 30. */
  intervalMinutes: number;
  /** What titles must match; empty is everything. */
  includePattern: string;
  /** What titles must not match; empty is nothing. */
  excludePattern: string;
  /** Patterns are regular expressions. Else they are words: blanks mean and, `|` means or. */
  useRegex: boolean;
  /** Each episode is downloaded once. */
  smartEpisode: boolean;
  /** The smallest size; 0 is none. */
  sizeMinBytes: number;
  /** The largest size; 0 is none. */
  sizeMaxBytes: number;
  /** Accepted qualities (`1080p`, `web-dl`, `2160p bluray`), best first; empty is every one. */
  qualities: string[];
  /** An episode is downloaded again in a better one of `qualities`. */
  upgradeQuality: boolean;
  /** Rules for what has matched the patterns and sizes above; the first that matches takes an item. Empty takes all. */
  rules: RssRuleDto[];
  /** Downloads carry the feed's site as `Referer`. */
  sendReferer: boolean;
  /** The event of changed items names the titles of new downloads, for a notification. */
  notifyOnDownload: boolean;
  /** The most downloads that one fetch begins; 0 is 20. */
  maxPerFetch: number;
  /** Cookies of the feed, and of downloads from its own origin; `***` if there are some. */
  cookies: string;
  /** User agent of feed and downloads; empty is the global one. */
  userAgent: string;
  /** Proxy of feed and downloads; empty is the global one. */
  proxyUrl: string;
  /** Links of the feed may lead to private addresses. */
  allowPrivate: boolean;
  /** The plugin's feed that is read; empty is RSS, Atom or JSON Feed. */
  providerId: string;
  /** The plugin's fields. */
  providerConfig: Record<string, string>;
  /** Runtime: when it was last fetched; Unix seconds, 0 is never. */
  lastFetchAt: number;
  /** Runtime: when that last succeeded; Unix seconds, 0 is never. */
  lastSuccessAt: number;
  /** Runtime: when it is fetched next; Unix seconds, 0 is never. */
  nextFetchAt: number;
  /** Runtime: why the last fetch failed; empty if it succeeded. */
  lastError: string;
  /** Runtime: how many fetches failed since the last success. */
  failCount: number;
  /** Runtime: its first round is over. */
  seeded: boolean;
  /** Runtime: its place in the list. */
  position: number;
  /** Runtime: how many items are new. */
  unreadCount: number;
}

/** A subscription. Runtime fields are never written by a request. */
export interface RssSourceDtoInput {
  /** Its id. */
  sourceId?: string;
  /** The feed, or a web page that names one. */
  url?: string;
  /** Its name; empty takes the feed's title. */
  name?: string;
  /** It is fetched. */
  enabled?: boolean;
  /** New items that its rules take are downloaded. */
  autoDownload?: boolean;
  /** Confirms that every new item of the feed is downloaded. A source with `autoDownload` and without an include pattern,
   * of its own or of all its rules, is refused without it. */
  downloadAll?: boolean;
  /** Tasks are created paused. */
  startPaused?: boolean;
  /** The queue of its tasks; empty is the default one. */
  queueId?: string;
  /** The directory of its tasks; empty is the queue's. */
  saveDir?: string;
  /** Directories below it, such as `{series}/Season {season}`; may name `{series}`, `{season}`, `{episode}`, `{title}` and
   * `{source}`. A directory with a field that is not known is left out. */
  dirTemplate?: string;
  /** Minutes between two fetches; 0 is 30. */
  intervalMinutes?: number;
  /** What titles must match; empty is everything. */
  includePattern?: string;
  /** What titles must not match; empty is nothing. */
  excludePattern?: string;
  /** Patterns are regular expressions. Else they are words: blanks mean and, `|` means or. */
  useRegex?: boolean;
  /** Each episode is downloaded once. */
  smartEpisode?: boolean;
  /** The smallest size; 0 is none. */
  sizeMinBytes?: number;
  /** The largest size; 0 is none. */
  sizeMaxBytes?: number;
  /** Accepted qualities (`1080p`, `web-dl`, `2160p bluray`), best first; empty is every one. */
  qualities?: string[];
  /** An episode is downloaded again in a better one of `qualities`. */
  upgradeQuality?: boolean;
  /** Rules for what has matched the patterns and sizes above; the first that matches takes an item. Empty takes all. */
  rules?: RssRuleDtoInput[];
  /** Downloads carry the feed's site as `Referer`. */
  sendReferer?: boolean;
  /** The event of changed items names the titles of new downloads, for a notification. */
  notifyOnDownload?: boolean;
  /** The most downloads that one fetch begins; 0 is 20. */
  maxPerFetch?: number;
  /** Cookies of the feed, and of downloads from its own origin; `***` if there are some. */
  cookies?: string;
  /** User agent of feed and downloads; empty is the global one. */
  userAgent?: string;
  /** Proxy of feed and downloads; empty is the global one. */
  proxyUrl?: string;
  /** Links of the feed may lead to private addresses. */
  allowPrivate?: boolean;
  /** The plugin's feed that is read; empty is RSS, Atom or JSON Feed. */
  providerId?: string;
  /** The plugin's fields. */
  providerConfig?: Record<string, string>;
  /** Runtime: when it was last fetched; Unix seconds, 0 is never. */
  lastFetchAt?: number;
  /** Runtime: when that last succeeded; Unix seconds, 0 is never. */
  lastSuccessAt?: number;
  /** Runtime: when it is fetched next; Unix seconds, 0 is never. */
  nextFetchAt?: number;
  /** Runtime: why the last fetch failed; empty if it succeeded. */
  lastError?: string;
  /** Runtime: how many fetches failed since the last success. */
  failCount?: number;
  /** Runtime: its first round is over. */
  seeded?: boolean;
  /** Runtime: its place in the list. */
  position?: number;
  /** Runtime: how many items are new. */
  unreadCount?: number;
}

/** Params of the methods for one subscription. */
export interface RssSourceParams {
  /** The subscription. */
  sourceId?: string;
}

/** A dry run of a feed. */
export interface RssValidateRequest {
  /** The feed. */
  url?: string;
  /** Cookies to fetch it with. */
  cookies?: string;
  /** User agent to fetch it with. */
  userAgent?: string;
  /** Proxy to fetch it through. */
  proxyUrl?: string;
  /** The source whose rules are tried. Its `sourceId` lets them be tried against the stored history. */
  source?: RssSourceDtoInput | null;
}

/** The result of a dry run. */
export interface RssValidateResponse {
  /** Where the feed was found. */
  url: string;
  /** Its title. */
  feedTitle: string;
  /** Its items. */
  items: RssValidatedItem[];
  /** Why there are none; empty if the feed could be read. */
  error: string;
}

/** What the rules would do with an item. */
export interface RssValidatedItem {
  /** What identifies it. */
  guid: string;
  /** Its title. */
  title: string;
  /** The page about it. */
  link: string;
  /** The file. */
  enclosureUrl: string;
  /** The file's size; 0 is unknown. */
  enclosureLength: number;
  /** When it was published; Unix seconds, 0 is unknown. */
  pubDate: number;
  /** The series and episode that its title names. */
  episodeKey: string;
  /** It would be downloaded. */
  taken: boolean;
  /** The rule that decides; empty is the source itself. */
  rule: string;
  /** Why: a stable name. */
  reason: string;
  /** Why, for people. */
  detail: string;
}

/** Sums over the tasks. */
export interface RuntimeStats {
  /** Tasks in the states preparing and downloading. */
  activeTasks: number;
  /** Tasks in the state pending. */
  pendingTasks: number;
  /** Finished torrents that upload to others. */
  seedingTasks: number;
  /** Download speed in bytes per second. */
  totalDownloadBps: number;
  /** Upload speed in bytes per second. */
  totalUploadBps: number;
  /** The limit of all downloads together that is in force, in bytes per second; 0: none. */
  downloadLimitBps: number;
  /** The limit of all uploads together that is in force, in bytes per second; 0: none. */
  uploadLimitBps: number;
  /** Whether these are the limits of the turtle. */
  turtle: boolean;
  /** Free bytes in the default directory. */
  diskFreeBytes: number | null;
  /** The default directory. */
  saveDir: string;
}

/** Params of `daemon.queue.schedule`. */
export interface ScheduleParams {
  /** The queue. */
  queueId: string;
  /** Whether the schedule is enabled. */
  enabled: boolean;
  /** Local time as `HH:MM`; empty: never. */
  startTime?: string;
  /** Local time as `HH:MM`; empty: never. */
  stopTime?: string;
  /** Days as bits, bit 0 for Monday; 0: every day. */
  days?: number;
}

/** Params of `daemon.task.setSeedLimits`. Of each limit, -2 is the one in the settings and -1 none. */
export interface SeedLimitParams {
  /** The task. */
  taskId: string;
  /** Uploaded bytes by the torrent's size, in thousandths. */
  ratioLimitMilli: number;
  /** The same of what is uploaded after completion. */
  postRatioLimitMilli: number;
  /** Minutes of seeding. */
  seedTimeLimitMinutes: number;
  /** Seconds of seeding, in place of the minutes. */
  seedTimeLimitSecs?: number | null;
  /** Minutes without an upload. */
  inactiveTimeLimitMinutes: number;
  /** Upload limit in bytes per second; 0: none. */
  uploadLimitBps: number;
}

/** One byte range of a file. */
export interface SegmentDto {
  /** Its position, from 0. */
  index: number;
  /** First byte. */
  startByte: number;
  /** Last byte. */
  endByte: number;
  /** Bytes of it on disk. */
  downloadedBytes: number;
  /** Whether a connection is downloading it. */
  active: boolean | null;
}

/** A question of a task. It is asked while a client has subscribed to questions; without an answer in time, the default
 * choice is taken. */
export interface SelectionDto {
  /** Names the question in its answer. */
  requestId: string;
  /** The task that waits for the answer. */
  taskId: string;
  /** What is asked. */
  kind: SelectionKind;
  /** What is taken without an answer. */
  defaultChoice: SelectionOutcome;
  /** Until when it waits, in Unix milliseconds. */
  deadlineUnixMs: number;
}

/** A file that can be chosen. */
export interface SelectionFileDto {
  /** Its place in the torrent, from 0. */
  index: number;
  /** Its path in the torrent, with `/` between names. */
  path: string;
  /** Its size in bytes. */
  size: number;
}

/** What is asked. */
export type SelectionKind =
  /** Which files of a torrent to download. */
  | ({ type: "bt" } & {
  /** The first [`MAX_OFFERED_FILES`] of them. */
  files: SelectionFileDto[];
  /** How many there are. */
  fileCount: number;
  });

/** The answer to a question. */
export type SelectionOutcome =
  /** These files. */
  | ({ kind: "bt" } & {
  /** Their places in the torrent; empty: all. */
  indices: number[];
  })
  /** None: the task is paused, and asks again when it is resumed. */
  | { kind: "cancelled" };

/** The answer to a question. */
export type SelectionOutcomeInput =
  /** These files. */
  | ({ kind: "bt" } & {
  /** Their places in the torrent; empty: all. */
  indices?: number[];
  })
  /** None: the task is paused, and asks again when it is resumed. */
  | { kind: "cancelled" };

/** Params of `daemon.selection.resolve`. */
export interface SelectionResolveParams {
  /** The question. */
  requestId: string;
  /** The answer. */
  outcome: SelectionOutcomeInput;
}

/** Data of [`crate::DaemonEvent::SelectionResolved`]. */
export interface SelectionResolved {
  /** The question. */
  requestId: string;
}

/** The connections to one server. */
export interface ServerDto {
  /** The task's URL, or one that its plugin found, without user name and password. */
  url: string;
  /** Where it led, after redirects; empty: to itself. */
  currentUrl?: string;
  /** Bytes per second of each connection, smoothed. */
  downloadBps: number[];
}

/** The sender of an event. */
export type Service =
  /** The agent. */
  | "agent"
  /** The daemon. */
  | "daemon";

/** An event and its sender. */
export interface ServiceEvent<E = EventBody> {
  /** The sender. */
  service: Service;
  /** The event. */
  event: E;
}

/** Params of the notification [`crate::SERVICE_EVENT`], generic over the event's form. */
export interface ServiceEventParams<E = EventBody> {
  /** The epoch of the sequence number. After a new epoch a client needs a new snapshot. */
  epoch: string;
  /** One more than the event before it. */
  sequence: number;
  /** The event. */
  event: ServiceEvent<E>;
}

/** Params of `daemon.plugin.setEnabled`. */
export interface SetPluginEnabledParams {
  /** `name@author`. */
  identity: string;
  /** Whether to enable it. */
  enabled: boolean;
  /** The digest of the permissions that the user agrees to; required if it requests any. */
  consent?: string | null;
}

/** Params of `daemon.plugin.setPinned`. */
export interface SetPluginPinnedParams {
  /** `name@author`. */
  identity: string;
  /** Whether automatic updates are off for this plugin. */
  pinned: boolean;
}

/** What a setting is, and what it may be. */
export interface SettingDto {
  /** The key, the member of `agent.gateway.patch`, or the name in `agent.preferences.patch`. */
  key: string;
  /** The subject: `downloads`, `speed`, `torrents`, `seeding`, `network`, `plugins`, `after`, `webhooks`, `access` or
   * `desktop`. */
  group: string;
  /** What its text is. */
  kind: SettingKind;
  /** The default, as the text that is set. */
  default: string;
  /** The least of a number. */
  min?: number;
  /** The most of a number. */
  max?: number;
  /** The texts of a choice. */
  choices?: string[];
  /** What a number counts: `bytesPerSecond`, `seconds`, `minutes`, `days` as bits; empty: things. */
  unit?: string;
  /** Whether it acts after the next start only. */
  restart?: boolean;
  /** Whether it is shown as `***`. */
  secret?: boolean;
  /** What it does, as text for users. */
  meaning: string;
}

/** The definition of a setting. */
export interface SettingFieldDto {
  /** The key. */
  key: string;
  /** The display name. */
  title: string;
  /** The description. */
  description: string;
  /** `string`, `number` or `boolean`. */
  type: string;
  /** `text`, `password`, `textarea`, `select`, `toggle`, `number` or `folder`. */
  widget: string;
  /** The choices of a `select`. */
  options: SettingOptionDto[];
  /** The default value. */
  default: string | null;
  /** Whether a value is required. */
  required: boolean;
  /** The minimum of a number. */
  min: number | null;
  /** The maximum of a number. */
  max: number | null;
  /** The regular expression that a text must match. */
  pattern: string | null;
  /** Not used; clients expect it. */
  helperScript: string | null;
  /** Not used; clients expect it. */
  helperLabel: string | null;
}

/** What the text of a setting is. */
export type SettingKind =
  /** `true` or `false`. */
  | "switch"
  /** A whole number. */
  | "number"
  /** A number with up to three decimals. */
  | "decimal"
  /** One of some texts. */
  | "choice"
  /** Any text of one line. */
  | "text"
  /** An absolute path of a directory on the service's machine, or empty. */
  | "directory"
  /** `off`, `auto` or the absolute path of a program. */
  | "program"
  /** The id of a queue. */
  | "queue"
  /** A time of the day as `HH:MM`, or empty. */
  | "time"
  /** URLs, one a line. */
  | "urls"
  /** JSON that other screens edit. */
  | "json";

/** A choice of a setting. */
export interface SettingOptionDto {
  /** The value. */
  value: string;
  /** The display name. */
  label: string;
}

/** A credential with its password, for the local agent only. */
export interface SiteAuthCredential {
  /** The site. */
  site: string;
  /** The user name. */
  user: string;
  /** The password. */
  pass: string;
}

/** A site with saved credentials, without the password. */
export interface SiteAuthEntryDto {
  /** `scheme://host[:port]`. */
  site: string;
  /** The user name. */
  username: string;
  /** The user name again, under the name that existing clients read. */
  user: string;
}

/** Params of `daemon.siteAuth.save`. */
export interface SiteAuthSaveRequest {
  /** The site, or any URL of it; a bare host means https. */
  site: string;
  /** The user name; not empty. */
  user: string;
  /** The password. */
  pass?: string;
}

/** A site with stored cookies. Their names and values are not shown. */
export interface SiteCookiesDto {
  /** A registered domain, such as `example.com`, or a host. */
  site: string;
  /** How many cookies are stored. */
  count: number;
  /** When the last of them expires, in Unix seconds; absent if one never does. */
  expiresAt?: number;
}

/** Params of `daemon.siteCookies.import`. */
export interface SiteCookiesImportRequest {
  /** The export of a browser: the text of a `cookies.txt` (Netscape's format), or the JSON that extensions write. At most
   * 512 KiB. */
  cookies: string;
  /** Take the cookies of this site only, and leave out the others. */
  site?: string;
}

/** Names a site. */
export interface SiteParams {
  /** The site. */
  site: string;
}

/** Names a site by one of its URLs. */
export interface SiteUrlParams {
  /** The URL. */
  url: string;
}

/** Whose snapshot, and the snapshot. */
export interface SnapshotBody<S = DaemonSnapshot> {
  /** Whose. */
  role: Role;
  /** The snapshot. */
  snapshot: S;
}

/** Result of `system.snapshot`: an agent answers with an [`crate::agent::AgentSnapshot`]. */
export interface SnapshotResult<S = DaemonSnapshot> {
  /** In which epoch the sequence counts. */
  epoch: string;
  /** The last event that the body holds. */
  sequence: number;
  /** Everything. */
  body: SnapshotBody<S>;
}

/** Why a source failed. */
export interface SourceFailureDto {
  /** The time in Unix milliseconds. */
  timestampMs: number;
  /** The kind of the failure, as in `errorKind` of a task. */
  errorKind: string;
  /** The message, as text for users. */
  message: string;
}

/** Params of `daemon.task.setSpeedLimit`. */
export interface SpeedLimitParams {
  /** The task. */
  taskId: string;
  /** Bytes per second; 0 is no limit. */
  speedLimitBytes: number;
}

/** Result of `daemon.config.systemProxy`. */
export interface SystemProxyResult {
  /** Whether the system has a proxy configured. */
  detected: boolean;
  /** `http`, `https`, `socks4` or `socks5`. */
  proxyType: string;
  /** The host. */
  host: string;
  /** The port, as text. */
  port: string;
  /** Hosts that are connected to directly. */
  noList: string;
}

/** A task as clients see it. */
export interface TaskDto {
  /** The task's id, a UUID. */
  taskId: string;
  /** The URL, without user name and password. */
  url: string;
  /** Further URLs of the same file. */
  mirrors?: string[];
  /** The file name; until the server was asked, derived from the URL. */
  fileName: string;
  /** The directory of the file. */
  saveDir: string;
  /** 0: pending, 1: downloading, 2: paused, 3: completed, 4: error, 5: preparing. */
  status: TaskStatus;
  /** Bytes of the file on disk. */
  downloadedBytes: number;
  /** The size of the file in bytes; 0: unknown. */
  totalBytes: number;
  /** The info hash of a torrent in hexadecimal digits; absent: it is none. */
  infoHash?: string;
  /** Why it failed, which failure it will retry after, or which limit of an account it waits for; else empty. */
  errorMessage: string;
  /** The kind of that failure, a stable name in kebab-case; else empty. */
  errorKind: string;
  /** The login without which its plugin gives no link. It goes on by itself after one; resuming it tries again at once. */
  loginNeed?: LoginNeedDto;
  /** The time of the retry, or at which the daily allowance of its account is renewed, in Unix seconds; empty: it waits
   * for neither. */
  continuesAt?: string;
  /** The time of creation in Unix seconds. */
  createdAt: string;
  /** The task's own proxy, without user name and password; empty: as in the settings. */
  proxyUrl: string;
  /** The id of its queue. */
  queueId: string;
  /** The expected checksum, as `algorithm=hex`; empty: none. */
  checksum: string;
  /** Whether any TLS certificate is accepted. */
  ignoreTlsErrors: boolean;
  /** Whether the finished file was missing at the last check. */
  fileMissing: boolean;
  /** The time of completion in Unix seconds; empty before. */
  completedAt: string;
  /** The `Referer` header. */
  referrer: string;
  /** The id of its group; empty: none. */
  groupId: string;
  /** The id of the feed that created it; empty: none. */
  rssSourceId: string;
  /** Who created it without the access key: the `Origin` of a browser extension, or `link:` and the fingerprint of a
   * paired device; else empty. */
  createdBy?: string;
  /** Words of the user by which tasks are found, in order. */
  tags?: string[];
  /** The URL to show instead of `url`; empty: `url`. */
  originUrl: string;
  /** Reserved; empty. */
  autoRoute: string;
  /** The position in the queue, from 1; tasks with 0 follow, oldest first. */
  queueOrder: number;
  /** Bytes uploaded. 0 for all but torrents, like all fields of seeding. */
  uploadedBytes: number;
  /** Bytes that were uploaded before completion. */
  uploadedAtCompletion: number;
  /** 0: not seeding, 1: seeding, 2: a ratio was reached, 3: the time was reached, 4: a user stopped it, 6: switched off, or
   * it failed (`seedingMessage`), 7: nothing was uploaded for long enough, 8: waits for a slot. */
  seedingStatus: number;
  /** Why seeding failed; else empty. */
  seedingMessage: string;
  /** Seconds of seeding, brought up to date with each upload and every ten minutes. */
  seedingTimeSecs: number;
  /** The task's own limit; -2: as in the settings, -1: none. */
  seedRatioLimitMilli: number;
  /** The task's own limit; -2: as in the settings, -1: none. */
  seedPostRatioLimitMilli: number;
  /** The task's own limit; -2: as in the settings, -1: none. */
  seedTimeLimitMinutes: number;
  /** The task's own limit; -2: as in the settings, -1: none. */
  seedInactiveTimeLimitMinutes: number;
}

/** Names a task. */
export interface TaskIdParams {
  /** The task. */
  taskId: string;
}

/** Names tasks. */
export interface TaskIdsParams {
  /** The tasks. */
  taskIds: string[];
}

/** Progress of a running task. */
export interface TaskRuntimeDto {
  /** The id of the task. */
  taskId: string;
  /** The time of the sample in Unix milliseconds. */
  sampledAtMs: number;
  /** Increases with every sample since the start of the daemon. */
  sampleSequence: number;
  /** Connections in use. */
  activeTransfers: number | null;
  /** Peers of a torrent that are connected. */
  connectedPeers: number | null;
  /** Those of them that have everything. */
  connectedSeeds?: number;
  /** The maximum number of connections. */
  parallelismLimit: number | null;
  /** Bytes of the file on disk. */
  downloadedBytes: number;
  /** The size of the file in bytes; 0: unknown. */
  totalBytes: number;
  /** Download speed in bytes per second, smoothed. */
  downloadBps: number;
  /** Upload speed in bytes per second, smoothed. */
  uploadBps: number;
  /** Bytes uploaded, those of earlier runs included. 0 for all but torrents. */
  uploadedBytes: number;
  /** The segments in order; empty if there is only one. */
  segments: SegmentDto[];
  /** The servers that send, with their connections. */
  servers?: ServerDto[];
}

/** A source of a task. */
export interface TaskSource {
  /** Its URL, without a password. */
  url: string;
  /** Its last failure beside other sources, as far back as the task's history goes. Of the only source of a task, the
   * task's own failure tells. */
  failure?: SourceFailureDto;
}

/** Result of `daemon.task.sources`. */
export interface TaskSources {
  /** The task's URL and its mirrors; then others that failed: links that its plugin found, and URLs that were replaced. */
  sources: TaskSource[];
}

/** A task's state, by its number on the wire. */
export const TaskStatus = {
  /** Waits for a slot of its queue, for a retry, or for the limits of its account. */
  Pending: 0,
  /** Downloads. */
  Downloading: 1,
  /** Paused by a user or its queue. */
  Paused: 2,
  /** The file is complete. */
  Completed: 3,
  /** Failed; a user can resume it. */
  Error: 4,
  /** Resolves or probes the source. */
  Preparing: 5,
} as const;
export type TaskStatus = (typeof TaskStatus)[keyof typeof TaskStatus];

/** Params of `daemon.task.setTags`: replaces all. */
export interface TaskTagsParams {
  /** The task, whatever its state. */
  taskId: string;
  /** Its tags: at most 32, of at most 64 bytes each. */
  tags: string[];
}

/** Tasks that one call changed, with their new state. */
export interface TasksSnapshot {
  /** New or changed. */
  tasks: TaskDto[];
  /** Deleted. */
  deletedTaskIds: string[];
}

/** What changes of how a torrent is downloaded; the rest stays. A torrent that is running continues with it. */
export interface TorrentChange {
  /** The places of the files to download; empty: all files. What is there of the others stays. */
  files?: number[] | null;
  /** URLs of additional trackers, in place of those before. */
  trackers?: string[] | null;
  /** URLs of additional web servers, in place of those before. */
  webseeds?: string[] | null;
  /** Download the pieces from the first to the last, instead of the rarest first. */
  sequential?: boolean | null;
  /** Download the first and last piece of each file before all others, which players need. */
  firstLastPieceFirst?: boolean | null;
  /** Download the pieces of so many bytes at the beginning of each file before all others; 0: none. */
  headBytes?: number | null;
  /** The same of the end of each file. */
  tailBytes?: number | null;
  /** Seconds; 0: the default. */
  metadataTimeoutSecs?: number | null;
  /** Seconds; 0: it waits for ever. */
  stallTimeoutSecs?: number | null;
  /** The most connections to peers; 0: as in the settings. */
  maxPeers?: number | null;
}

/** Params of `daemon.torrent.change`. */
export type TorrentChangeParams = TorrentChange & {
  /** The task. */
  taskId: string;
};

/** What is known of a task's torrent. */
export interface TorrentDto {
  /** The task. */
  taskId: string;
  /** The info hash in hexadecimal digits. */
  infoHash: string;
  /** The name of its file or directory in the torrent; empty: unknown. */
  name: string;
  /** Whether its files are known. A magnet link alone has only a hash; all that follows up to `magnet` is empty, 0 or
   * false until peers sent the rest. */
  hasMetadata: boolean;
  /** Whether it has a directory of files, and not one file. */
  isMultiFile: boolean;
  /** Whether peers come from its own trackers only. */
  isPrivate: boolean;
  /** The size of all files in bytes. */
  totalBytes: number;
  /** How many files there are. */
  fileCount: number;
  /** The size of a piece in bytes. */
  pieceBytes: number;
  /** How many pieces there are. */
  pieces: number;
  /** How many pieces are there and verified. */
  piecesHave: number;
  /** The comment of its author; empty: none. */
  comment: string;
  /** The program that made it; empty: unknown. */
  createdBy: string;
  /** When it was made, in Unix seconds. */
  createdAt: number | null;
  /** URLs of its own trackers, in tiers. */
  trackers: string[][];
  /** URLs of web servers that have the files. */
  webseeds: string[];
  /** Its magnet link, with its trackers. */
  magnet: string;
  /** How it is downloaded. */
  options: TorrentRequest;
  /** Whether it is running: all that follows is 0 or false otherwise. */
  isRunning: boolean;
  /** Whether it is complete and uploads to others. */
  isSeeding: boolean;
  /** Connected peers. */
  peers: number;
  /** Those of them that have everything. */
  seeds: number;
  /** Bytes that arrived and were of no use. */
  wastedBytes: number;
}

/** Result of `daemon.torrent.export`. */
export interface TorrentExport {
  /** A name for the file. */
  fileName: string;
  /** The torrent file in base64; empty while the metadata of a magnet link is not known. */
  torrentB64: string;
  /** The magnet link, with trackers. */
  magnet: string;
}

/** A file of a torrent. */
export interface TorrentFileDto {
  /** Its place in the torrent, from 0. */
  index: number;
  /** Its path in the torrent, with `/` between names. Of a torrent with one file, its name. */
  path: string;
  /** Its path below the directory of the torrent, or the name of an only file, if that is another one than in the torrent. */
  renamed?: string;
  /** Where it is, or will be once it is complete. */
  filePath: string;
  /** Its size in bytes. */
  sizeBytes: number;
  /** How much of it is there and verified. */
  doneBytes: number;
  /** Whether it is downloaded. */
  wanted: boolean;
}

/** Where a file of a torrent goes. */
export interface TorrentFilePath {
  /** The place of the file in the torrent, from 0. */
  index: number;
  /** Its path below the directory of the torrent, with `/` between names; the name of the file if it is the only one. */
  path: string;
}

/** Files of a torrent, in its order. */
export interface TorrentFiles {
  /** The page. */
  files: TorrentFileDto[];
  /** How many files the torrent has. */
  total: number;
  /** The `offset` of the next page; `null`: there is none. */
  nextOffset?: number;
}

/** Params of `daemon.torrent.files`. */
export interface TorrentFilesParams {
  /** The task. */
  taskId: string;
  /** The place of the first file of the page. */
  offset?: number;
  /** At most this many, 1 to [`TorrentFiles::MAX`]; so many by default. */
  limit?: number | null;
}

/** A connected peer. Its states are those of BEP 3. */
export interface TorrentPeerDto {
  /** Its IP address. */
  ip: string;
  /** Its port. */
  port: number;
  /** Its identity, 20 bytes in hexadecimal digits. */
  peerId: string;
  /** The program that it says it is; empty: it does not say. */
  client: string;
  /** How it was found: `user`, `tracker`, `lan`, `dht`, `exchange` or `incoming`. */
  source: string;
  /** Pieces that it has. */
  pieces: number;
  /** Which pieces it has, in hexadecimal digits: the first piece is the highest bit of the first digit. Empty for a torrent
   * of more than 65,536 pieces. */
  bitfield: string;
  /** Whether it has everything. */
  isSeed: boolean;
  /** Bytes per second that it sends. */
  downloadBps: number;
  /** Bytes per second that it gets. */
  uploadBps: number;
  /** Bytes that it sent. */
  downloadedBytes: number;
  /** Bytes that it got. */
  uploadedBytes: number;
  /** It does not serve us. */
  peerChoking: boolean;
  /** It wants data of us. */
  peerInterested: boolean;
  /** We do not serve it. */
  amChoking: boolean;
  /** We want data of it. */
  amInterested: boolean;
  /** It owes data for long. */
  snubbed: boolean;
  /** It connected to us. */
  incoming: boolean;
}

/** The connected peers of a torrent. */
export interface TorrentPeers {
  /** The peers; none if the torrent is not running. */
  peers: TorrentPeerDto[];
}

/** The pieces of a torrent. */
export interface TorrentPieces {
  /** The size of a piece in bytes; the last one may be shorter. */
  pieceBytes: number;
  /** How many pieces there are. */
  pieces: number;
  /** How many are there and verified. */
  piecesHave: number;
  /** Which are there, in hexadecimal digits: the first piece is the highest bit of the first digit. */
  bitfield: string;
  /** The first piece of `availability`. */
  offset: number;
  /** How many connected peers have each piece, from `offset`; empty if the torrent is not running. */
  availability: number[];
  /** The `offset` of the next page of `availability`; `null`: there is none. */
  nextOffset?: number;
}

/** Params of `daemon.torrent.pieces`. */
export interface TorrentPiecesParams {
  /** The task. */
  taskId: string;
  /** The first piece of `availability`. */
  offset?: number;
  /** At most so many pieces in `availability`, 0 to [`TorrentPieces::MAX`]; so many by default. */
  limit?: number | null;
}

/** How a torrent is downloaded. */
export interface TorrentRequest {
  /** The places of the files to download, from 0; empty: all files. */
  files: number[];
  /** URLs of trackers besides those of the torrent. A private torrent uses its own only. */
  trackers: string[];
  /** URLs of web servers that have the files, besides those of the torrent. */
  webseeds: string[];
  /** Download the pieces from the first to the last, instead of the rarest first. */
  sequential: boolean;
  /** Download the first and last piece of each file before all others, which players need. */
  firstLastPieceFirst: boolean;
  /** Download the pieces of so many bytes at the beginning of each file before all others; 0: none. */
  headBytes: number;
  /** The same of the end of each file. */
  tailBytes: number;
  /** Ask which files to download once they are known, if there are several and a client can show the question. */
  askForFiles: boolean;
  /** Once the files of a magnet link are known, wait paused until the task is resumed. */
  stopAfterMetadata: boolean;
  /** Complete the task once the metadata of its magnet link is there: no file is downloaded. */
  metadataOnly: boolean;
  /** Write the metadata of a magnet link into the save directory once it came, as `<info hash>.torrent`, unless a file has
   * that name. */
  saveMetadata: boolean;
  /** Seconds after which a magnet link whose metadata did not come fails; `null` or 0: the default. */
  metadataTimeoutSecs?: number;
  /** Seconds without a received byte after which the download fails; `null` or 0: it waits for ever. */
  stallTimeoutSecs?: number;
  /** The most connections to peers; `null` or 0: as in the settings. */
  maxPeers?: number;
  /** Paths of files in place of those that the torrent names. */
  paths?: TorrentFilePath[];
}

/** How a torrent is downloaded. */
export interface TorrentRequestInput {
  /** The places of the files to download, from 0; empty: all files. */
  files?: number[];
  /** URLs of trackers besides those of the torrent. A private torrent uses its own only. */
  trackers?: string[];
  /** URLs of web servers that have the files, besides those of the torrent. */
  webseeds?: string[];
  /** Download the pieces from the first to the last, instead of the rarest first. */
  sequential?: boolean;
  /** Download the first and last piece of each file before all others, which players need. */
  firstLastPieceFirst?: boolean;
  /** Download the pieces of so many bytes at the beginning of each file before all others; 0: none. */
  headBytes?: number;
  /** The same of the end of each file. */
  tailBytes?: number;
  /** Ask which files to download once they are known, if there are several and a client can show the question. */
  askForFiles?: boolean;
  /** Once the files of a magnet link are known, wait paused until the task is resumed. */
  stopAfterMetadata?: boolean;
  /** Complete the task once the metadata of its magnet link is there: no file is downloaded. */
  metadataOnly?: boolean;
  /** Write the metadata of a magnet link into the save directory once it came, as `<info hash>.torrent`, unless a file has
   * that name. */
  saveMetadata?: boolean;
  /** Seconds after which a magnet link whose metadata did not come fails; `null` or 0: the default. */
  metadataTimeoutSecs?: number | null;
  /** Seconds without a received byte after which the download fails; `null` or 0: it waits for ever. */
  stallTimeoutSecs?: number | null;
  /** The most connections to peers; `null` or 0: as in the settings. */
  maxPeers?: number | null;
  /** Paths of files in place of those that the torrent names. */
  paths?: TorrentFilePath[];
}

/** The session of all torrents. It begins with the first of them. */
export interface TorrentSessionDto {
  /** Whether it has begun. If not, no port is open. */
  isRunning: boolean;
  /** The port that accepts peers; `null`: none does. */
  port: number | null;
  /** Our node of the distributed hash table for IPv4; `null`: it does not run. */
  dhtV4: DhtNodeDto | null;
  /** The same for IPv6. */
  dhtV6: DhtNodeDto | null;
  /** Why the local network is not asked for peers; empty: it is, or is switched off. */
  lanError: string;
  /** The port that the router opened; `null`: it was not asked. */
  portMapping: PortMappingDto | null;
}

/** A tracker of a torrent. */
export interface TorrentTrackerDto {
  /** Its URL. */
  url: string;
  /** Its tier, from 0. */
  tier: number;
  /** Who named it: `torrent` (or the user for this torrent), `custom` (the settings) or `list` (a subscribed list). */
  source: string;
  /** `waiting` (not asked yet), `announcing`, `working`, `failed`, or `disabled` (it asked not to be asked again). */
  status: string;
  /** Peers of its last answer. */
  peers: number | null;
  /** Complete peers, as it counts. */
  seeds: number | null;
  /** Incomplete peers, as it counts. */
  leechers: number | null;
  /** Completed downloads, as it counts. */
  downloads: number | null;
  /** Seconds until it is asked next; `null`: it is being asked, or has no turn. */
  nextAnnounceSecs: number | null;
  /** Its refusal or warning, or why there was no answer; empty: none. */
  message: string;
}

/** The trackers of a torrent. */
export interface TorrentTrackers {
  /** The trackers, by tier. */
  trackers: TorrentTrackerDto[];
}

/** A list of trackers that was read. */
export interface TrackerListDto {
  /** Where it is. */
  url: string;
  /** How many trackers it has. */
  trackerCount: number;
  /** Why it was not read; empty: it was. */
  error: string;
}

/** Result of `daemon.bt.trackerSubscription.refresh`. */
export interface TrackerListsRefreshed {
  /** Whether every list was read. */
  success: boolean;
  /** How many trackers they have. */
  trackerCount: number;
  /** How many lists were read. */
  okSources: number;
  /** How many lists there are. */
  totalSources: number;
  /** When, in Unix seconds. */
  updatedAt: number;
  /** Why the first of the others was not read; empty: all were. */
  error: string;
  /** Each list. */
  lists: TrackerListDto[];
}

/** Params of `daemon.plugin.uninstall`. */
export interface UninstallPluginParams {
  /** `name@author`. */
  identity: string;
  /** Keep its accounts until it is installed again. Refused for a plugin that is not signed. */
  keepAccounts?: boolean;
}

/** Params of `daemon.plugin.updateSettings`. All values are set, or none if one is invalid. */
export interface UpdatePluginSettingsParams {
  /** `name@author`. */
  identity: string;
  /** The values by key; an empty one restores the default. */
  entries: Record<string, string>;
}

/** Params of `daemon.queue.update`. The daemon reads its two halves, so that an error names the field. */
export type UpdateQueueParams = QueueFields & {
  /** The queue. */
  queueId: string;
};

/** The answer to `daemon.vault.rotate`. */
export interface VaultRotated {
  /** How many values were sealed with the new key. */
  values: number;
}

/** Result of `daemon.webhook.get`. */
export interface WebhookDeliveries {
  /** The newest 1,000 since the start of the daemon, newest first. */
  deliveries: WebhookDeliveryDto[];
  /** Deliveries since the start that were dropped because 256 others waited. */
  dropped: number;
  /** Events since the start that were lost because too many happened at once. */
  missed: number;
}

/** A delivery to an endpoint. Secrets of the endpoint are replaced by `***`. */
export interface WebhookDeliveryDto {
  /** Its id, as in the header `X-Svc-Delivery`. */
  deliveryId: string;
  /** The endpoint. */
  endpointId: string;
  /** The endpoint's name at that time. */
  endpointName: string;
  /** The event. */
  event: string;
  /** The task; empty for events of queues. */
  taskId: string;
  /** Sent by `daemon.webhook.test` or `simulate`. */
  test: boolean;
  /** What became of it. */
  status: WebhookDeliveryStatus;
  /** Attempts that have ended. */
  attempts: number;
  /** The status of the last response; 0: none. */
  httpStatus: number;
  /** Why the last attempt failed; else empty. */
  error: string;
  /** The first 2,000 characters of the request's body. */
  requestBody: string;
  /** The first 2,000 characters of the last response's body. */
  responseBody: string;
  /** When the event happened, in Unix milliseconds. */
  createdAtMs: number;
  /** When it ended, in Unix milliseconds; 0: not yet. */
  endedAtMs: number;
}

/** What became of a delivery. */
export type WebhookDeliveryStatus =
  /** It waits for its turn or is being sent. */
  | "pending"
  /** An attempt failed; another one follows. */
  | "retrying"
  /** The endpoint answered with 2xx. */
  | "delivered"
  /** No attempt succeeded. */
  | "failed"
  /** It was given up without an attempt that succeeded: the queue was full, or its endpoint was removed. */
  | "dropped";

/** An endpoint, an element of the array in the setting `webhook.endpoints`. The setting is replaced as a whole; secrets
 * are shown as `***` and stay as they are when an endpoint of the same id has that value or leaves them out. */
export interface WebhookEndpointDto {
  /** Its id: 1 to 64 letters, digits, `-`, `_` and `.`. */
  id?: string;
  /** Its name; empty is the id. */
  name?: string;
  /** The body: `json`, `discord`, `slack`, `telegram`, `ntfy` or `gotify`; empty is `json`. */
  preset?: string;
  /** Where deliveries are sent. Shown as `https://host/***`, because path and query are a credential at most services;
   * that text means "unchanged". */
  url?: string;
  /** Events are delivered. */
  enabled?: boolean;
  /** The events; empty is `task.completed` and `task.failed`. */
  events?: string[];
  /** Only events of this queue, which must exist when it is set; empty is every queue. */
  queueId?: string;
  /** Headers of the requests. Shown with `***` as values; left out, or a value of `***`: unchanged. */
  headers?: Record<string, string> | null;
  /** The body instead of the preset's, with fields such as `{{task.fileName}}`; empty is the preset's. */
  bodyTemplate?: string;
  /** Signs deliveries (`X-Svc-Signature`). Shown as `***` if there is one; left out or `***`: unchanged; empty: none. */
  signSecret?: string | null;
  /** The URL may be plain HTTP. */
  allowHttp?: boolean;
  /** The URL may lead to private addresses: this machine and the local network. */
  allowPrivate?: boolean;
  /** Requests go through the proxy of the settings. */
  useProxy?: boolean;
}

/** Params of `daemon.webhook.simulate`. */
export interface WebhookSimulateParams {
  /** The event; empty is `task.completed`. */
  event?: string;
}

/** Result of `daemon.webhook.simulate`. */
export interface WebhookSimulated {
  /** To how many endpoints it is being delivered. */
  count: number;
}

/** Params of `daemon.webhook.test`. */
export interface WebhookTestParams {
  /** A draft of an endpoint; need not be stored. Secrets of a stored one with its id are used as in the setting. */
  endpoint?: WebhookEndpointDto;
  /** The event; empty is `task.completed`. */
  event?: string;
}
