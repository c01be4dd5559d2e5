// Interim until the crate `protocol` writes this file.
export interface GatewayStatusDto {
  enabled: boolean;
  takeoverEnabled: boolean;
  jsonrpcEnabled: boolean;
  apiEnabled: boolean;
  mcpEnabled: boolean;
  corsEnabled: boolean;
  userTokenConfigured: boolean;
  port: number;
  portEditable: boolean;
  lanEnabled: boolean;
  restartRequired: boolean;
}
export interface GatewayPatch {
  enabled?: boolean | null;
  takeoverEnabled?: boolean | null;
  jsonrpcEnabled?: boolean | null;
  apiEnabled?: boolean | null;
  mcpEnabled?: boolean | null;
  corsEnabled?: boolean | null;
  lanEnabled?: boolean | null;
  port?: number | null;
  userToken?: string | null;
  regenerateUserToken?: boolean | null;
}
export interface RevealedToken {
  userToken: string;
}
export interface PreferencesPatch {
  values: Record<string, unknown>;
  sync?: boolean;
}
export interface PreferencesPatched {
  ok: boolean;
  revision: number;
}
export interface Preferences {
  revision: number;
  values: Record<string, unknown>;
}
export interface AgentSnapshot {
  daemon: DaemonSnapshot;
  daemonConnected: boolean;
  preferences: Preferences;
  gateway: GatewayStatusDto;
  linkedDevices: unknown[];
  pendingCaptures: PendingCaptureDto[];
  linkPairingRequests: unknown[];
  linkDiscovered: unknown[];
}
export interface Calls {

}
export interface Cursor {

}
export interface ServiceEventParams {
  epoch: string;
  sequence: number;
  event: unknown;
}
export interface ServiceEvent {
  service: Service;
  event: unknown;
}
export interface EventBody {
  type: string;
  data: unknown;
}
export interface TasksSnapshot {
  tasks: TaskDto[];
  deletedTaskIds: string[];
}
export interface RssItemsChanged {
  sourceId: string;
  itemRevision: number;
  notifyTitles: string[];
}
export interface RpcError {
  code: number;
  message: string;
  data?: ErrorData | null;
}
export interface ErrorData {
  code: ErrorCode;
  retryable: boolean;
  field?: string | null;
  revision?: number | null;
  reason?: Reason | null;
}
export interface Endpoint {
  port: number;
  instanceId: string;
  pid: number;
  serviceVersion: string;
  protocolVersion: number;
}
export interface ChallengeParams {
  clientNonce: string;
}
export interface ChallengeResult {
  serverNonce: string;
  serverProof: string;
}
export interface ProveParams {
  clientProof: string;
}
export interface ProveResult {
  authenticated: boolean;
}
export interface HelloParams {
  clientName: string;
  clientVersion: string;
  minProtocolVersion: number;
  maxProtocolVersion: number;
  requestedRole: Role;
  capabilities?: string[];
}
export interface HelloResult {
  role: Role;
  serviceName: string;
  serviceVersion: string;
  protocolVersion: number;
  instanceId: string;
  capabilities: string[];
}
export interface OkResult {
  ok: boolean;
}
export interface PluginAuthRequest {
  identity?: string | null;
  action: PluginAuthAction;
  slot?: string | null;
  mode?: string | null;
  sessionId?: string | null;
  site?: string | null;
  authRef?: string | null;
  input?: string | null;
  values?: Record<string, string> | null;
}
export interface PluginAuthResponse {
  status: PluginAuthStatus;
  sessionId: string;
  challenge: string | null;
  challengeType: string | null;
  message: string;
  authRef: string | null;
  screen?: LoginScreenDto | null;
  accounts?: LoginSlotDto[] | null;
}
export interface LoginScreenDto {
  message: string;
  qr?: LoginQrDto | null;
  fields: LoginFieldDto[];
  openUrl?: LoginUrlDto | null;
  pollAfterMs?: number | null;
}
export interface LoginQrDto {
  payload: string;
  expiresInSeconds: number;
  hint: string;
}
export interface LoginFieldDto {
  key: string;
  label: string;
  secret: boolean;
}
export interface LoginUrlDto {
  url: string;
  redirectPrefix?: string | null;
}
export interface LoginSlotDto {
  slot: string;
  title: string;
  modes: string[];
  account: LoginAccountDto | null;
}
export interface LoginAccountDto {
  id: string;
  name: string;
  since: number;
  expired: boolean;
  site?: string | null;
}
export interface DownloadRequest {
  url?: string;
  filename?: string;
  saveDir?: string;
  referrer?: string;
  cookies?: string;
  headers?: Record<string, string> | null;
  fileSize?: number | null;
  mimeType?: string | null;
  method?: string | null;
  body?: RequestBody | null;
  audioUrl?: string | null;
}
export interface CaptureSubmitParams {
  request: DownloadRequest;
  silent?: boolean | null;
}
export interface CaptureResolveParams {
  transactionId: string;
  accepted: boolean;
  request?: DownloadRequest | null;
}
export interface CaptureResolved {
  accepted: boolean;
  taskId?: string | null;
  taskIds?: string[];
}
export interface PendingCaptureDto {
  transactionId: string;
  url: string;
  fileName: string;
  createdAtUnixMs: number;
  fileSize: number;
  referrer: string;
  saveDir: string;
  hasCookies: boolean;
  headerNames: string[];
  method?: string;
  body?: string;
}
export interface ConfigSnapshot {
  revision: number;
  values: Record<string, string>;
}
export interface ConfigPatch {
  expectedRevision: number;
  values?: Record<string, string>;
  unset?: string[];
}
export interface ProxyTestParams {
  proxyType?: string;
  host?: string;
  port?: string;
  username?: string;
  password?: string;
  url?: string;
}
export interface ProxyTestResult {
  latencyMs: number;
}
export interface ConnPolicyResult {
  domainCount: number;
}
export interface SystemProxyResult {
  detected: boolean;
  proxyType: string;
  host: string;
  port: string;
  noList: string;
}
export interface GroupDto {
  groupId: string;
  name: string;
  sourceUrl: string;
  saveDir: string;
  createdAt: string;
  leftOut?: LeftOutDto[];
}
export interface CreateGroupRequest {
  sourceUrl?: string;
  groupName?: string;
  saveDir?: string;
  queueId?: string;
  segments?: number;
  cookies?: string;
  referrer?: string;
  userAgent?: string;
  proxyUrl?: string;
  extraHeaders?: Record<string, string>;
  ignoreTlsErrors?: boolean;
  startPaused?: boolean;
  items?: GroupItemDto[];
  leftOut?: LeftOutDto[];
}
export interface CreateGroupResponse {
  groupId: string;
  taskIds: string[];
}
export interface CreateGroupTasksParams {
  groupName: string;
  sourceUrl?: string;
  saveDir?: string;
  requests: CreateTaskRequest[];
}
export interface LeftOutDto {
  kind: string;
  name: string;
  count: number;
}
export interface MarketEntryDto {
  pluginId: string;
  version: string;
  sequence: number;
  contentHash: string;
  minAppVersion: string;
  name: string;
  description: string;
  author: string;
  homepage: string;
  mirrors: string[];
  publishTime: string;
  yanked: string;
  tags: string[];
  permissions: string[];
  source: string;
  signedBy?: string | null;
  installed?: MarketInstalledDto | null;
  updateAvailable: boolean;
  updatesAtMs?: number | null;
  stale: boolean;
  revoked?: RevocationDto | null;
}
export interface MarketInstalledDto {
  version: string;
  pinned: boolean;
}
export interface RevocationDto {
  level: string;
  reason: string;
}
export interface MarketSourceDto {
  id: string;
  name: string;
  url: string;
  fingerprint: string;
  status: string;
  plugins: number;
  addedAtMs?: number | null;
  refreshedAtMs?: number | null;
  validUntilMs?: number | null;
  error?: string | null;
  errorReason?: string | null;
}
export interface MarketInstallRequest {
  pluginId: string;
  version?: string | null;
  source?: string | null;
  agreed?: string[] | null;
}
export interface MarketRefreshRequest {
  source?: string | null;
}
export interface MarketSourceAddRequest {
  link: string;
  fingerprint?: string | null;
}
export interface MarketSourceAddResponse {
  url: string;
  fingerprint: string;
  source?: MarketSourceDto | null;
}
export interface MarketSourceParams {
  source: string;
}
export interface SetPluginPinnedParams {
  identity: string;
  pinned: boolean;
}
export interface SetPluginPinnedRequest {
  pinned: boolean;
}
export interface PluginDto {
  identity: string;
  name: string;
  version: string;
  description: string;
  homepage: string;
  enabled: boolean;
  devMode: boolean;
  disabledReason: DisabledReason;
  settings: SettingFieldDto[];
  settingsValues: Record<string, string>;
  permissions: string[];
  optionalHosts?: OptionalHostDto[];
  authSupported: boolean;
  subscriptionProviderIds: string[];
  subscriptionFields?: SettingFieldDto[];
  loadStatus: string;
  loadError: string;
  codeDigest: string;
  devError?: DevErrorDto | null;
  pending?: PendingVersionDto | null;
  capabilities: string[];
  source: string;
  signedBy?: string | null;
  pinned: boolean;
  previousVersion?: string | null;
  revoked?: RevocationDto | null;
  health: PluginHealthDto;
}
export interface PluginHealthDto {
  state: string;
  sinceMs: number;
  advice?: string;
}
export interface OptionalHostDto {
  host: string;
  choice: string;
}
export interface ChoosePluginHostParams {
  identity: string;
  host: string;
  choice: string;
}
export interface ChoosePluginHostRequest {
  host: string;
  choice: string;
}
export interface InstallPluginFileParams {
  path: string;
}
export interface PluginJournalDto {
  events: PluginEventDto[];
  lines: PluginLineDto[];
  requests: PluginRequestDto[];
}
export interface PluginEventDto {
  atMs: number;
  event: string;
  detail: string;
  call?: PluginCallDto | null;
}
export interface PluginCallDto {
  id: number;
  action: string;
  code: string;
  instantiateMicros: number;
  cpuMs: number;
  wallMs: number;
  requests: number;
  receivedBytes: number;
  peakMemoryBytes: number;
  lostLines: number;
}
export interface PluginLineDto {
  atMs: number;
  call: number;
  level: string;
  text: string;
}
export interface PluginRequestDto {
  atMs: number;
  call: number;
  method: string;
  address: string;
  status: number | null;
  receivedBytes: number;
  elapsedMs: number;
}
export interface DevErrorDto {
  step: string;
  message: string;
}
export interface PendingVersionDto {
  version: string;
  added: string[];
  signedBy?: string | null;
  authorChanged: boolean;
  folder?: string | null;
  digest: string;
}
export interface SettingFieldDto {
  key: string;
  title: string;
  description: string;
  type: string;
  widget: string;
  options: SettingOptionDto[];
  default: string | null;
  required: boolean;
  min: number | null;
  max: number | null;
  pattern: string | null;
  helperScript: string | null;
  helperLabel: string | null;
}
export interface SettingOptionDto {
  value: string;
  label: string;
}
export interface InstalledPlugin {
  identity: string;
  version: string;
  missingComponents: string[];
  pendingConsent?: string | null;
  source: string;
  signedBy?: string | null;
}
export interface InstallPluginParams {
  blobId: string;
}
export interface InstallPluginDevRequest {
  dirPath: string;
}
export interface PluginParams {
  identity: string;
}
export interface UninstallPluginParams {
  identity: string;
  keepAccounts?: boolean;
}
export interface SetPluginEnabledParams {
  identity: string;
  enabled: boolean;
  consent?: string | null;
}
export interface SetPluginEnabledRequest {
  enabled: boolean;
  consent?: string | null;
}
export interface UpdatePluginSettingsParams {
  identity: string;
  entries: Record<string, string>;
}
export interface ResolvePreviewRequest {
  url?: string;
  cookies?: string;
  referrer?: string;
  userAgent?: string;
  extraHeaders?: Record<string, string>;
}
export interface ResolvePreviewResponse {
  name: string;
  sourceUrl: string;
  plugin: string;
  error: string;
  message?: string;
  grantable?: boolean;
  grantableHosts?: string[];
  items: PreviewItemDto[];
  leftOut?: LeftOutDto[];
  totalBytes: number;
  unknownSizes: number;
}
export interface PreviewItemDto {
  id: string;
  name: string;
  path: string;
  kind: string;
  selected: boolean;
  size: number;
  sizeFromServer?: boolean;
  checksum?: string;
  variants: PreviewVariantDto[];
}
export interface PreviewVariantDto {
  id: string;
  label: string;
  size: number;
  sizeFromServer?: boolean;
  checksum?: string;
}
export interface GroupItemDto {
  resolverItem: string;
  fileName: string;
  relPath: string;
  size: number;
  checksum?: string;
}
export interface PostJobDto {
  jobId: number;
  taskId: string;
  groupId: string;
  files: string[];
  steps: PostStep[];
  step: number;
  state: PostState;
  progress: number | null;
  message: string;
  createdAtMs: number;
}
export interface PostJobs {
  jobs: PostJobDto[];
  passwords: number;
}
export interface PostStartRequest {
  taskId?: string;
  groupId?: string;
  steps?: PostStep[];
  passwords?: string[];
}
export interface PostStarted {
  jobId: number;
}
export interface PostJobParams {
  jobId: number;
}
export interface PostCleared {
  count: number;
}
export interface PostPasswords {
  passwords: string[];
}
export interface QueueDto {
  queueId: string;
  name: string;
  speedLimitKbps: number;
  uploadLimitKbps: number;
  maxConcurrent: number;
  defaultSaveDir: string;
  position: number;
  defaultSegments: number;
  defaultUserAgent: string;
  postChain?: PostStep[];
  isRunning: boolean;
  scheduleEnabled: boolean;
  scheduleStart: string;
  scheduleStop: string;
  scheduleDays: number;
}
export interface QueueFields {
  name: string;
  speedLimitKbps?: number;
  uploadLimitKbps?: number;
  maxConcurrent?: number;
  defaultSaveDir?: string;
  defaultSegments?: number;
  defaultUserAgent?: string;
  postChain?: PostStep[];
}
export interface UpdateQueueParams extends QueueFields {
  queueId: string;
}
export interface QueueIdParams {
  queueId: string;
}
export interface ScheduleParams {
  queueId: string;
  enabled: boolean;
  startTime?: string;
  stopTime?: string;
  days?: number;
}
export interface ReorderParams {
  queueId: string;
  taskIds: string[];
}
export interface MoveTaskParams {
  taskId: string;
  queueId?: string;
}
export interface BoostParams {
  id: string;
}
export interface RssSourceDto {
  sourceId: string;
  url: string;
  name: string;
  enabled: boolean;
  autoDownload: boolean;
  downloadAll: boolean;
  startPaused: boolean;
  queueId: string;
  saveDir: string;
  dirTemplate: string;
  intervalMinutes: number;
  includePattern: string;
  excludePattern: string;
  useRegex: boolean;
  smartEpisode: boolean;
  sizeMinBytes: number;
  sizeMaxBytes: number;
  qualities: string[];
  upgradeQuality: boolean;
  rules: RssRuleDto[];
  sendReferer: boolean;
  notifyOnDownload: boolean;
  maxPerFetch: number;
  cookies: string;
  userAgent: string;
  proxyUrl: string;
  allowPrivate: boolean;
  providerId: string;
  providerConfig: Record<string, string>;
  lastFetchAt: number;
  lastSuccessAt: number;
  nextFetchAt: number;
  lastError: string;
  failCount: number;
  seeded: boolean;
  position: number;
  unreadCount: number;
}
export interface RssRuleDto {
  name: string;
  includePattern: string;
  excludePattern: string;
  useRegex: boolean;
  sizeMinBytes: number;
  sizeMaxBytes: number;
  queueId: string;
  saveDir: string;
  dirTemplate: string;
}
export interface RssItemDto {
  sourceId: string;
  guid: string;
  title: string;
  link: string;
  enclosureUrl: string;
  enclosureLength: number;
  pubDate: number;
  fetchedAt: number;
  status: RssItemStatus;
  taskId: string;
  episodeKey: string;
  reason: string;
  detail: string;
}
export interface RssItemActionRequest {
  guid?: string;
  action?: string;
}
export interface RssSourceParams {
  sourceId?: string;
}
export interface RssItemActionParams {
  sourceId?: string;
  guid?: string;
  action?: string;
}
export interface RssCreatedSource {
  sourceId: string;
}
export interface RssImportRequest {
  document?: string;
}
export interface RssImportResponse {
  sourceIds: string[];
  known: number;
  failed: RssImportFailure[];
}
export interface RssImportFailure {
  name: string;
  url: string;
  error: string;
}
export interface RssExportResponse {
  document: string;
}
export interface RssValidateRequest {
  url?: string;
  cookies?: string;
  userAgent?: string;
  proxyUrl?: string;
  source?: RssSourceDto | null;
}
export interface RssValidateResponse {
  url: string;
  feedTitle: string;
  items: RssValidatedItem[];
  error: string;
}
export interface RssValidatedItem {
  guid: string;
  title: string;
  link: string;
  enclosureUrl: string;
  enclosureLength: number;
  pubDate: number;
  episodeKey: string;
  taken: boolean;
  rule: string;
  reason: string;
  detail: string;
}
export interface RuntimeStats {
  activeTasks: number;
  pendingTasks: number;
  seedingTasks: number;
  totalDownloadBps: number;
  totalUploadBps: number;
  diskFreeBytes: number | null;
  saveDir: string;
}
export interface FsListParams {
  path?: string;
}
export interface FsListResult {
  path: string;
  parent: string | null;
  entries: FsEntry[];
  truncated: boolean;
}
export interface FsEntry {
  name: string;
  path: string;
}
export interface ComponentParams {
  component: Component;
}
export interface ComponentDto {
  component: Component;
  enabled: boolean;
  available: boolean;
  version: string | null;
  source: ComponentSource;
  path: string | null;
  problem: string | null;
  isolated: boolean | null;
  isolationProblem: string | null;
}
export interface DiagnosticsResult {
  service: string;
  version: string;
  instanceId: string;
  uptimeSecs: number;
  tasks: number;
  queues: number;
  groups: number;
  configRevision: number;
  logDir: string;
  connections: number;
  pluginCalls: number;
  pluginFaults: number;
  pluginCallMs: number;
  residentBytes?: number | null;
  components: unknown[];
}
export interface ExportResult {
  exportId: string;
}
export interface LogFile {
  name: string;
  text: string;
}
export interface VaultRotated {
  values: number;
}
export interface SelectionDto {
  requestId: string;
  taskId: string;
  kind: SelectionKind;
  defaultChoice: SelectionOutcome;
  deadlineUnixMs: number;
}
export interface SelectionFileDto {
  index: number;
  path: string;
  size: number;
}
export interface SelectionResolveParams {
  requestId: string;
  outcome: SelectionOutcome;
}
export interface SelectionResolved {
  requestId: string;
}
export interface SiteAuthEntryDto {
  site: string;
  username: string;
  user: string;
}
export interface SiteAuthSaveRequest {
  site: string;
  user: string;
  pass?: string;
}
export interface SiteAuthCredential {
  site: string;
  user: string;
  pass: string;
}
export interface SiteParams {
  site: string;
}
export interface SiteUrlParams {
  url: string;
}
export interface SiteCookiesDto {
  site: string;
  count: number;
  expiresAt?: number | null;
}
export interface SiteCookiesImportRequest {
  cookies: string;
  site?: string;
}
export interface CreateTaskRequest {
  url?: string;
  mirrors?: string[];
  fileName?: string;
  saveDir?: string;
  segments?: number;
  cookies?: string;
  referrer?: string;
  userAgent?: string;
  proxyUrl?: string;
  queueId?: string;
  checksum?: string;
  pieceHashes?: string;
  expectedSizeBytes?: number | null;
  mimeType?: string;
  ignoreTlsErrors?: boolean;
  headers?: Record<string, string> | null;
  torrentB64?: string | null;
  torrentBlobId?: string | null;
  followTorrent?: boolean | null;
  torrent?: TorrentRequest | null;
  metalinkB64?: string | null;
  method?: string | null;
  body?: RequestBody | null;
  audioUrl?: string | null;
  startPaused?: boolean;
  httpUser?: string;
  httpPassword?: string;
  saveSiteAuth?: boolean;
  speedLimitBytes?: number;
  fileExistsBehavior?: string;
  maxConnections?: number | null;
  minSplitBytes?: number | null;
  maxTries?: number | null;
  retryWaitSecs?: number | null;
  useServerTime?: boolean | null;
  lowestSpeedBytes?: number;
  maxNotFound?: number;
  checkIntegrity?: boolean;
  noNetrc?: boolean;
  uploadLimitBytes?: number;
  noSeed?: boolean;
  seedRatioLimitMilli?: number | null;
  seedTimeLimitSecs?: number | null;
}
export interface TaskDto {
  taskId: string;
  url: string;
  mirrors?: string[];
  fileName: string;
  saveDir: string;
  status: number;
  downloadedBytes: number;
  totalBytes: number;
  infoHash?: string;
  errorMessage: string;
  errorKind: string;
  loginNeed?: LoginNeedDto | null;
  continuesAt?: string;
  createdAt: string;
  proxyUrl: string;
  queueId: string;
  checksum: string;
  ignoreTlsErrors: boolean;
  fileMissing: boolean;
  completedAt: string;
  referrer: string;
  groupId: string;
  rssSourceId: string;
  createdBy?: string;
  originUrl: string;
  autoRoute: string;
  queueOrder: number;
  uploadedBytes: number;
  uploadedAtCompletion: number;
  seedingStatus: number;
  seedingMessage: string;
  seedingTimeSecs: number;
  seedRatioLimitMilli: number;
  seedPostRatioLimitMilli: number;
  seedTimeLimitMinutes: number;
  seedInactiveTimeLimitMinutes: number;
}
export interface LoginNeedDto {
  identity: string;
  slot: string;
  account?: string;
}
export interface TaskRuntimeDto {
  taskId: string;
  sampledAtMs: number;
  sampleSequence: number;
  activeTransfers: number | null;
  connectedPeers: number | null;
  connectedSeeds?: number | null;
  parallelismLimit: number | null;
  downloadedBytes: number;
  totalBytes: number;
  downloadBps: number;
  uploadBps: number;
  uploadedBytes: number;
  segments: SegmentDto[];
  servers?: ServerDto[];
}
export interface ServerDto {
  url: string;
  currentUrl?: string;
  downloadBps: number[];
}
export interface SegmentDto {
  index: number;
  startByte: number;
  endByte: number;
  downloadedBytes: number;
  active: boolean | null;
}
export interface TaskIdParams {
  taskId: string;
}
export interface TaskIdsParams {
  taskIds: string[];
}
export interface FindTasksParams {
  prefixes: string[];
}
export interface FoundTasks {
  taskIds: string[];
}
export interface SeedLimitParams {
  taskId: string;
  ratioLimitMilli: number;
  postRatioLimitMilli: number;
  seedTimeLimitMinutes: number;
  seedTimeLimitSecs?: number | null;
  inactiveTimeLimitMinutes: number;
  uploadLimitBps: number;
}
export interface DeleteTaskParams {
  taskId: string;
  deleteFiles?: boolean;
}
export interface DeleteTasksParams {
  taskIds: string[];
  deleteFiles?: boolean;
}
export interface CreateTaskParams {
  request: CreateTaskRequest;
  torrentBlobId?: string | null;
  unattended?: boolean;
  hintFileSize?: number | null;
  taskId?: string | null;
  requester?: Requester | null;
}
export interface Requester {
  userHost: string;
  createdBy?: string;
}
export interface CreateTasksParams {
  requests: CreateTaskRequest[];
  requester?: Requester | null;
}
export interface CreatedTask {
  taskId: string;
  message?: string;
  taskIds?: string[];
}
export interface CreatedTasks {
  taskIds: string[];
  messages?: string[];
}
export interface RenameTaskParams {
  taskId: string;
  fileName: string;
}
export interface ChangeUrlParams {
  taskId: string;
  url: string;
}
export interface ChangedTask {
  ok: boolean;
  notice?: string | null;
}
export interface ChangeTaskParams {
  taskId: string;
  change: Record<string, unknown>;
}
export interface SpeedLimitParams {
  taskId: string;
  speedLimitBytes: number;
}
export interface ActivityParams {
  taskId: string;
  beforeId?: number | null;
  afterId?: number | null;
  limit?: number | null;
}
export interface ActivityEntry {
  id: number;
  taskId: string;
  timestampMs: number;
  kind: string;
  message: string;
  status: number | null;
}
export interface ActivityPage {
  items: ActivityEntry[];
  hasMore: boolean;
}
export interface GroupIdParams {
  groupId: string;
}
export interface GroupDeleteParams {
  groupId: string;
  deleteFiles?: boolean;
}
export interface BlobResult {
  blobId: string;
}
export interface TorrentRequest {
  files?: number[];
  trackers?: string[];
  webseeds?: string[];
  sequential?: boolean;
  firstLastPieceFirst?: boolean;
  askForFiles?: boolean;
  stopAfterMetadata?: boolean;
  metadataTimeoutSecs?: number | null;
  stallTimeoutSecs?: number | null;
  maxPeers?: number | null;
  paths?: TorrentFilePath[];
}
export interface TorrentFilePath {
  index: number;
  path: string;
}
export interface TorrentDto {
  taskId: string;
  infoHash: string;
  name: string;
  hasMetadata: boolean;
  isMultiFile: boolean;
  isPrivate: boolean;
  totalBytes: number;
  fileCount: number;
  pieceBytes: number;
  pieces: number;
  piecesHave: number;
  comment: string;
  createdBy: string;
  createdAt: number | null;
  trackers: string[][];
  webseeds: string[];
  magnet: string;
  options: TorrentRequest;
  isRunning: boolean;
  isSeeding: boolean;
  peers: number;
  seeds: number;
  wastedBytes: number;
}
export interface TorrentFilesParams {
  taskId: string;
  offset?: number;
  limit?: number | null;
}
export interface TorrentFiles {
  files: TorrentFileDto[];
  total: number;
  nextOffset?: number | null;
}
export interface TorrentFileDto {
  index: number;
  path: string;
  filePath: string;
  sizeBytes: number;
  doneBytes: number;
  wanted: boolean;
}
export interface TorrentPeers {
  peers: TorrentPeerDto[];
}
export interface TorrentPeerDto {
  ip: string;
  port: number;
  peerId: string;
  client: string;
  source: string;
  pieces: number;
  bitfield: string;
  isSeed: boolean;
  downloadBps: number;
  uploadBps: number;
  downloadedBytes: number;
  uploadedBytes: number;
  peerChoking: boolean;
  peerInterested: boolean;
  amChoking: boolean;
  amInterested: boolean;
  snubbed: boolean;
  incoming: boolean;
}
export interface TorrentTrackers {
  trackers: TorrentTrackerDto[];
}
export interface TorrentTrackerDto {
  url: string;
  tier: number;
  source: string;
  status: string;
  peers: number | null;
  seeds: number | null;
  leechers: number | null;
  downloads: number | null;
  nextAnnounceSecs: number | null;
  message: string;
}
export interface TorrentPiecesParams {
  taskId: string;
  offset?: number;
  limit?: number | null;
}
export interface TorrentPieces {
  pieceBytes: number;
  pieces: number;
  piecesHave: number;
  bitfield: string;
  offset: number;
  availability: number[];
  nextOffset?: number | null;
}
export interface TorrentExport {
  fileName: string;
  torrentB64: string;
  magnet: string;
}
export interface TorrentChangeParams extends TorrentChange {
  taskId: string;
}
export interface TorrentChange {
  files?: number[] | null;
  trackers?: string[] | null;
  webseeds?: string[] | null;
  sequential?: boolean | null;
  firstLastPieceFirst?: boolean | null;
  metadataTimeoutSecs?: number | null;
  stallTimeoutSecs?: number | null;
  maxPeers?: number | null;
}
export interface RenameTorrentFileParams {
  taskId: string;
  index: number;
  path: string;
}
export interface TorrentSessionDto {
  isRunning: boolean;
  port: number | null;
  dhtV4: DhtNodeDto | null;
  dhtV6: DhtNodeDto | null;
  lanError: string;
  portMapping: PortMappingDto | null;
}
export interface DhtNodeDto {
  address: string;
  nodes: number;
}
export interface PortMappingDto {
  externalPort: number | null;
  externalAddress: string;
  error: string;
}
export interface TrackerListsRefreshed {
  success: boolean;
  trackerCount: number;
  okSources: number;
  totalSources: number;
  updatedAt: number;
  error: string;
  lists: TrackerListDto[];
}
export interface TrackerListDto {
  url: string;
  trackerCount: number;
  error: string;
}
export interface WebhookEndpointDto {
  id: string;
  name: string;
  preset: string;
  url: string;
  enabled: boolean;
  events: string[];
  queueId: string;
  headers?: Record<string, string> | null;
  bodyTemplate: string;
  signSecret?: string | null;
  allowHttp: boolean;
  allowPrivate: boolean;
  useProxy: boolean;
}
export interface WebhookDeliveryDto {
  deliveryId: string;
  endpointId: string;
  endpointName: string;
  event: string;
  taskId: string;
  test: boolean;
  status: WebhookDeliveryStatus;
  attempts: number;
  httpStatus: number;
  error: string;
  requestBody: string;
  responseBody: string;
  createdAtMs: number;
  endedAtMs: number;
}
export interface WebhookDeliveries {
  deliveries: WebhookDeliveryDto[];
  dropped: number;
  missed: number;
}
export interface WebhookSimulateParams {
  event?: string;
}
export interface WebhookSimulated {
  count: number;
}
export interface WebhookTestParams {
  endpoint?: WebhookEndpointDto;
  event?: string;
}
export interface SnapshotResult {
  epoch: string;
  sequence: number;
  body: SnapshotBody;
}
export interface SnapshotBody {
  role: Role;
  snapshot: DaemonSnapshot;
}
export interface DaemonSnapshot {
  taskRuntime: Record<string, TaskRuntimeDto>;
  tasks: TaskDto[];
  queues: QueueDto[];
  queuePositions: Record<string, number>;
  groups: GroupDto[];
  config: ConfigSnapshot;
  siteAuth: SiteAuthEntryDto[];
  rssSources: RssSourceDto[];
  rssItemRevisions: Record<string, number>;
  plugins: PluginDto[];
  components: unknown[];
  webhookDeliveries: WebhookDeliveryDto[];
  priority: string[];
  runtimeStats: RuntimeStats;
  pendingSelections: SelectionDto[];
}

export type DisabledReason = 'None' | 'Manual' | 'CircuitBreaker' | 'Revoked';
export type Role = 'agent' | 'daemon';
export type RequestBody = { kind: 'formData'; fields: Record<string, string[]> } | { kind: 'urlencoded'; raw: string } | { kind: 'raw'; bytesB64: string; contentType?: string };
export type SelectionKind = { type: 'bt'; files: SelectionFileDto[]; fileCount: number };
export type SelectionOutcome = { kind: 'bt'; indices: number[] } | { kind: 'cancelled' };

export type FailureKind =
  | 'invalid-source'
  | 'unsupported-scheme'
  | 'resolve'
  | 'connect'
  | 'timeout'
  | 'too-slow'
  | 'network'
  | 'tls'
  | 'proxy'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'still-not-found'
  | 'gone'
  | 'busy'
  | 'server-error'
  | 'unexpected-status'
  | 'too-many-redirects'
  | 'forbidden-redirect'
  | 'malformed-response'
  | 'range-mismatch'
  | 'encoding'
  | 'not-the-file'
  | 'changed'
  | 'size-mismatch'
  | 'checksum-mismatch'
  | 'disk-full'
  | 'quota-exceeded'
  | 'read-only'
  | 'permission-denied'
  | 'directory'
  | 'in-use'
  | 'exists'
  | 'disk-io'
  | 'plugin'
  | 'plugin-unavailable'
  | 'login-required'
  | 'account-limit'
  | 'internal';
export type ErrorCode = 'protocolIncompatible' | 'unauthorized' | 'invalidArgument' | 'notFound' | 'conflict' | 'unavailable' | 'timeout' | 'cancelled' | 'unsupported' | 'internal';
export type Reason =
  | 'marketUnreachable'
  | 'marketIndexInvalid'
  | 'marketIndexRollback'
  | 'marketVersionChanged'
  | 'pluginNotInMarket'
  | 'pluginYanked'
  | 'pluginDownloadFailed'
  | 'pluginPackageTooLarge'
  | 'pluginPackageInvalid'
  | 'pairingCodeInvalid'
  | 'pairingSessionExpired'
  | 'pairingPeerUnreachable'
  | 'pairingNotSvc'
  | 'pairingThrottled'
  | 'pairingRejected'
  | 'pairingSignatureInvalid'
  | 'pairingSelf'
  | 'pairingVersionMismatch'
  | 'peerNotPaired'
  | 'peerOffline'
  | 'settingUnknown'
  | 'saveDirUnavailable'
  | 'gatewayPortInUse'
  | 'gatewayRestartFailed'
  | 'unknown';
export interface Methods {
  'system.auth.challenge': { params: ChallengeParams; result: ChallengeResult };
  'system.auth.prove': { params: ProveParams; result: ProveResult };
  'system.hello': { params: HelloParams; result: HelloResult };
  'system.ping': { params: null; result: OkResult };
  'system.snapshot': { params: null; result: unknown };
  'system.shutdown': { params: null; result: OkResult };
  'daemon.task.list': { params: null; result: TaskDto[] };
  'daemon.task.get': { params: TaskIdParams; result: TaskDto };
  'daemon.task.activity': { params: ActivityParams; result: ActivityPage };
  'daemon.task.create': { params: CreateTaskParams; result: CreatedTask };
  'daemon.task.createMany': { params: CreateTasksParams; result: CreatedTasks };
  'daemon.task.pause': { params: TaskIdParams; result: OkResult };
  'daemon.task.resume': { params: TaskIdParams; result: OkResult };
  'daemon.task.request': { params: TaskIdParams; result: CreateTaskRequest };
  'daemon.task.change': { params: ChangeTaskParams; result: ChangedTask };
  'daemon.task.rename': { params: RenameTaskParams; result: OkResult };
  'daemon.task.changeUrl': { params: ChangeUrlParams; result: ChangedTask };
  'daemon.task.delete': { params: DeleteTaskParams; result: OkResult };
  'daemon.task.pauseAll': { params: null; result: OkResult };
  'daemon.task.resumeAll': { params: null; result: OkResult };
  'daemon.task.rescan': { params: null; result: OkResult };
  'daemon.task.setSpeedLimit': { params: SpeedLimitParams; result: OkResult };
  'daemon.task.setSeedLimits': { params: SeedLimitParams; result: OkResult };
  'daemon.task.pauseMany': { params: TaskIdsParams; result: OkResult };
  'daemon.task.resumeMany': { params: TaskIdsParams; result: OkResult };
  'daemon.task.deleteMany': { params: DeleteTasksParams; result: OkResult };
  'daemon.torrent.get': { params: TaskIdParams; result: TorrentDto };
  'daemon.torrent.files': { params: TorrentFilesParams; result: TorrentFiles };
  'daemon.torrent.peers': { params: TaskIdParams; result: TorrentPeers };
  'daemon.torrent.trackers': { params: TaskIdParams; result: TorrentTrackers };
  'daemon.torrent.pieces': { params: TorrentPiecesParams; result: TorrentPieces };
  'daemon.torrent.export': { params: TaskIdParams; result: TorrentExport };
  'daemon.torrent.change': { params: TorrentChangeParams; result: OkResult };
  'daemon.torrent.renameFile': { params: RenameTorrentFileParams; result: OkResult };
  'daemon.torrent.recheck': { params: TaskIdParams; result: OkResult };
  'daemon.torrent.reannounce': { params: TaskIdParams; result: OkResult };
  'daemon.torrent.session': { params: null; result: TorrentSessionDto };
  'daemon.bt.trackerSubscription.refresh': { params: null; result: TrackerListsRefreshed };
  'daemon.selection.subscribe': { params: null; result: OkResult };
  'daemon.selection.unsubscribe': { params: null; result: OkResult };
  'daemon.selection.resolve': { params: SelectionResolveParams; result: OkResult };
  'daemon.queue.list': { params: null; result: QueueDto[] };
  'daemon.queue.create': { params: QueueFields; result: OkResult };
  'daemon.queue.update': { params: UpdateQueueParams; result: OkResult };
  'daemon.queue.delete': { params: QueueIdParams; result: OkResult };
  'daemon.queue.start': { params: QueueIdParams; result: OkResult };
  'daemon.queue.stop': { params: QueueIdParams; result: OkResult };
  'daemon.queue.schedule': { params: ScheduleParams; result: OkResult };
  'daemon.queue.reorder': { params: ReorderParams; result: OkResult };
  'daemon.queue.moveTask': { params: MoveTaskParams; result: OkResult };
  'daemon.queue.boost': { params: BoostParams; result: OkResult };
  'daemon.group.list': { params: null; result: GroupDto[] };
  'daemon.group.create': { params: CreateGroupRequest; result: CreateGroupResponse };
  'daemon.group.createTasks': { params: CreateGroupTasksParams; result: CreateGroupResponse };
  'daemon.group.pause': { params: GroupIdParams; result: OkResult };
  'daemon.group.resume': { params: GroupIdParams; result: OkResult };
  'daemon.group.delete': { params: GroupDeleteParams; result: OkResult };
  'daemon.group.resolvePreview': { params: ResolvePreviewRequest; result: ResolvePreviewResponse };
  'daemon.plugin.list': { params: null; result: PluginDto[] };
  'daemon.plugin.install': { params: InstallPluginParams; result: InstalledPlugin };
  'daemon.plugin.installDev': { params: InstallPluginDevRequest; result: InstalledPlugin };
  'daemon.plugin.uninstall': { params: UninstallPluginParams; result: OkResult };
  'daemon.plugin.setEnabled': { params: SetPluginEnabledParams; result: OkResult };
  'daemon.plugin.updateSettings': { params: UpdatePluginSettingsParams; result: OkResult };
  'daemon.plugin.rollBack': { params: PluginParams; result: OkResult };
  'daemon.plugin.chooseHost': { params: ChoosePluginHostParams; result: OkResult };
  'daemon.plugin.installFile': { params: InstallPluginFileParams; result: InstalledPlugin };
  'daemon.plugin.journal': { params: PluginParams; result: PluginJournalDto };
  'daemon.plugin.ignoreRetry': { params: TaskIdParams; result: OkResult };
  'daemon.plugin.setPinned': { params: SetPluginPinnedParams; result: OkResult };
  'daemon.plugin.auth': { params: PluginAuthRequest; result: PluginAuthResponse };
  'daemon.plugin.marketList': { params: null; result: MarketEntryDto[] };
  'daemon.plugin.marketInstall': { params: MarketInstallRequest; result: InstalledPlugin };
  'daemon.plugin.marketRefresh': { params: MarketRefreshRequest; result: MarketSourceDto[] };
  'daemon.plugin.marketSourceList': { params: null; result: MarketSourceDto[] };
  'daemon.plugin.marketSourceAdd': { params: MarketSourceAddRequest; result: MarketSourceAddResponse };
  'daemon.plugin.marketSourceRemove': { params: MarketSourceParams; result: OkResult };
  'daemon.config.get': { params: null; result: ConfigSnapshot };
  'daemon.config.patch': { params: ConfigPatch; result: ConfigSnapshot };
  'daemon.config.proxyTest': { params: ProxyTestParams; result: ProxyTestResult };
  'daemon.config.connPolicy': { params: null; result: ConnPolicyResult };
  'daemon.config.clearConnPolicy': { params: null; result: ConnPolicyResult };
  'daemon.config.systemProxy': { params: null; result: SystemProxyResult };
  'daemon.siteAuth.list': { params: null; result: SiteAuthEntryDto[] };
  'daemon.siteAuth.get': { params: SiteParams; result: SiteAuthCredential | null };
  'daemon.siteAuth.match': { params: SiteUrlParams; result: SiteAuthCredential | null };
  'daemon.siteAuth.save': { params: SiteAuthSaveRequest; result: SiteAuthEntryDto };
  'daemon.siteAuth.delete': { params: SiteParams; result: SiteAuthEntryDto[] };
  'daemon.siteAuth.clear': { params: null; result: SiteAuthEntryDto[] };
  'daemon.siteCookies.list': { params: null; result: SiteCookiesDto[] };
  'daemon.siteCookies.import': { params: SiteCookiesImportRequest; result: SiteCookiesDto[] };
  'daemon.siteCookies.delete': { params: SiteParams; result: OkResult };
  'daemon.siteCookies.clear': { params: null; result: OkResult };
  'daemon.rss.listSources': { params: null; result: RssSourceDto[] };
  'daemon.rss.getItems': { params: RssSourceParams; result: RssItemDto[] };
  'daemon.rss.createSource': { params: RssSourceDto; result: RssCreatedSource };
  'daemon.rss.updateSource': { params: RssSourceDto; result: OkResult };
  'daemon.rss.deleteSource': { params: RssSourceParams; result: OkResult };
  'daemon.rss.refreshSource': { params: RssSourceParams; result: OkResult };
  'daemon.rss.itemAction': { params: RssItemActionParams; result: OkResult };
  'daemon.rss.validate': { params: RssValidateRequest; result: RssValidateResponse };
  'daemon.rss.import': { params: RssImportRequest; result: RssImportResponse };
  'daemon.rss.export': { params: null; result: RssExportResponse };
  'daemon.webhook.get': { params: null; result: WebhookDeliveries };
  'daemon.webhook.clearDeliveries': { params: null; result: OkResult };
  'daemon.webhook.simulate': { params: WebhookSimulateParams; result: WebhookSimulated };
  'daemon.webhook.test': { params: WebhookTestParams; result: WebhookDeliveryDto };
  'daemon.post.list': { params: null; result: PostJobs };
  'daemon.post.start': { params: PostStartRequest; result: PostStarted };
  'daemon.post.cancel': { params: PostJobParams; result: OkResult };
  'daemon.post.retry': { params: PostJobParams; result: OkResult };
  'daemon.post.clear': { params: null; result: PostCleared };
  'daemon.post.setPasswords': { params: PostPasswords; result: OkResult };
  'daemon.runtime.stats': { params: null; result: RuntimeStats };
  'daemon.fs.list': { params: FsListParams; result: FsListResult };
  'daemon.component.get': { params: ComponentParams; result: ComponentDto };
  'daemon.diagnostics.describe': { params: null; result: DiagnosticsResult };
  'daemon.diagnostics.prepareLogExport': { params: null; result: ExportResult };
  'daemon.vault.rotate': { params: null; result: VaultRotated };
  'agent.gateway.get': { params: null; result: GatewayStatusDto };
  'agent.gateway.patch': { params: GatewayPatch; result: GatewayStatusDto };
  'agent.gateway.revealToken': { params: null; result: RevealedToken };
  'agent.preferences.get': { params: null; result: Preferences };
  'agent.preferences.patch': { params: PreferencesPatch; result: PreferencesPatched };
  'agent.task.find': { params: FindTasksParams; result: FoundTasks };
  'agent.task.run': { params: TaskIdParams; result: TaskRuntimeDto | null };
  'agent.capture.submit': { params: CaptureSubmitParams; result: unknown };
  'agent.capture.list': { params: null; result: PendingCaptureDto[] };
  'agent.capture.resolve': { params: CaptureResolveParams; result: CaptureResolved };
  'agent.service.restart': { params: null; result: OkResult };
}
export type Service = 'agent' | 'daemon';
export type PluginAuthAction = string;
export type PluginAuthStatus = string;
export type PostStep = string;
export type PostState = string;
export type RssItemStatus = string;
export type Component = 'ffmpeg' | 'ytdlp';
export type ComponentSource = 'manual' | 'system' | 'none';
export type WebhookDeliveryStatus = string;
