// What page and worker say to each other.
import type { Packed } from './columns';
import type { Machine } from './machine';
import type { Row, Sample } from './row';
import type {
  ConfigSnapshot, GatewayStatusDto, GroupDto, LinkDeviceInfo, LinkDiscoveredPeer, LinkPairingRequestDto, PendingCaptureDto,
  PluginDto, Preferences, QueueDto, RpcError, RssSourceDto, RuntimeStats, SelectionDto, SiteAuthEntryDto,
} from './rpc';

/** All of the state but the tasks: small, each part replaced as a whole. */
export interface Slices {
  queues: QueueDto[];
  groups: GroupDto[];
  config: ConfigSnapshot;
  siteAuth: SiteAuthEntryDto[];
  rssSources: RssSourceDto[];
  rssItemRevisions: Record<string, number>;
  plugins: PluginDto[];
  priority: string[];
  runtimeStats: RuntimeStats | null;
  pendingSelections: SelectionDto[];
  daemonConnected: boolean;
  preferences: Preferences;
  gateway: GatewayStatusDto | null;
  linkedDevices: LinkDeviceInfo[];
  linkPairingRequests: LinkPairingRequestDto[];
  linkDiscovered: LinkDiscoveredPeer[];
  pendingCaptures: PendingCaptureDto[];
}

export const noSlices: Slices = {
  queues: [], groups: [], config: { revision: 0, values: {} }, siteAuth: [], rssSources: [], rssItemRevisions: {},
  plugins: [], priority: [], runtimeStats: null, pendingSelections: [], daemonConnected: true,
  preferences: { revision: 0, values: {} }, gateway: null, linkedDevices: [], linkPairingRequests: [], linkDiscovered: [],
  pendingCaptures: [],
};

/** Events since the last batch, merged: what a page needs to be as new as the worker. */
export interface Batch {
  rows: Row[];
  deleted: string[];
  samples: Sample[];
  slices: Partial<Slices>;
  /** Events that are not state, in order. */
  events: { type: string; data: unknown }[];
}

/** What the service said of itself in its hello. */
export interface Server {
  name: string;
  version: string;
  instanceId: string;
  capabilities: string[];
}

export type ToWorker =
  | { kind: 'start'; base: string; key: string; version: string; name: string }
  | { kind: 'call'; id: number; method: string; params: unknown; timeout: number }
  | { kind: 'visible'; visible: boolean }
  | { kind: 'wake' }
  /** The task whose servers are wanted too. */
  | { kind: 'watch'; id: string | null }
  | { kind: 'signOut' };

export type FromWorker =
  | { kind: 'machine'; machine: Machine; nextAt: number; server: Server | null }
  | { kind: 'snapshot'; packed: Packed; slices: Slices; samples: Sample[]; at: number }
  | { kind: 'batch'; batch: Batch }
  | { kind: 'reply'; id: number; result: unknown }
  | { kind: 'failed'; id: number; error: RpcError };
