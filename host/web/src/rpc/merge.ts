// Merges events between two batches: of each task the newest, of each part of the state the newest.
import type { Batch, Slices } from './messages';
import { rowOf, type Row, type Sample } from './row';
import type { TaskDto, TaskRuntimeDto } from './rpc';

export const MAX_SEGMENTS = 1024;
export const MAX_EVENTS = 2000;

/** Segments as numbers; neighbours are merged until at most 1,024 are left. */
export function packSegments(segments: TaskRuntimeDto['segments']): Float64Array {
  const each = Math.max(1, Math.ceil(segments.length / MAX_SEGMENTS));
  const packed = new Float64Array(Math.ceil(segments.length / each) * 4);
  for (let at = 0; at < segments.length; at++) {
    const segment = segments[at]!;
    const base = Math.floor(at / each) * 4;
    if (at % each === 0) packed[base] = segment.startByte ?? 0;
    packed[base + 1] = segment.endByte ?? 0;
    packed[base + 2]! += segment.downloadedBytes ?? 0;
    if (segment.active) packed[base + 3] = 1;
  }
  return packed;
}

export function sampleOf(runtime: TaskRuntimeDto): Sample {
  return {
    id: runtime.taskId,
    done: runtime.downloadedBytes ?? 0,
    total: runtime.totalBytes ?? 0,
    down: runtime.downloadBps ?? 0,
    up: runtime.uploadBps ?? 0,
    connections: runtime.activeTransfers ?? 0,
    peers: runtime.connectedPeers ?? 0,
    segments: packSegments(runtime.segments ?? []),
  };
}

/** Parts of the state that an event replaces. */
const parts: Record<string, keyof Slices> = {
  queuesChanged: 'queues',
  groupsChanged: 'groups',
  configChanged: 'config',
  siteAuthChanged: 'siteAuth',
  rssSourcesChanged: 'rssSources',
  pluginsChanged: 'plugins',
  priorityChanged: 'priority',
  runtimeStatsChanged: 'runtimeStats',
  daemonConnectionChanged: 'daemonConnected',
  preferencesChanged: 'preferences',
  gatewayChanged: 'gateway',
  linkedDevicesChanged: 'linkedDevices',
  linkPairingRequestsChanged: 'linkPairingRequests',
  linkDiscoveredChanged: 'linkDiscovered',
  pendingCapturesChanged: 'pendingCaptures',
};

/** Events that only screens that are open care for. */
const passed = new Set([
  'taskActivityAdded', 'captureTasksStarted', 'postJobsChanged', 'webhooksChanged', 'webhooksCleared', 'rssItemsChanged',
  'torrentChanged',
]);

type Changed = Partial<TaskDto> & { taskId: string };

export class Merge {
  #rows = new Map<string, Row | null>();
  #samples = new Map<string, Sample>();
  #slices: Partial<Slices> = {};
  #events: Batch['events'] = [];
  /** The task whose servers are passed on. */
  watched: string | null = null;

  /** @param current the parts of the state that grow by steps, as of now */
  constructor(private readonly current: Pick<Slices, 'pendingSelections' | 'rssItemRevisions'>) {}

  /** Takes one event; false if it replaces all of the daemon's state, which only a new snapshot can show. */
  add(type: string, data: unknown): boolean {
    const part = parts[type];
    if (part) {
      (this.#slices as Record<string, unknown>)[part] = data;
      return true;
    }
    switch (type) {
      case 'taskChanged':
        this.#row(data as Changed);
        return true;
      case 'tasksSnapshot': {
        const { tasks, deletedTaskIds } = data as { tasks?: Changed[]; deletedTaskIds?: string[] };
        for (const task of tasks ?? []) this.#row(task);
        for (const id of deletedTaskIds ?? []) this.#delete(id);
        return true;
      }
      case 'taskDeleted':
        this.#delete((data as { taskId: string }).taskId);
        return true;
      case 'taskRuntimeChanged': {
        const runtime = data as TaskRuntimeDto;
        const sample = sampleOf(runtime);
        if (runtime.taskId === this.watched) sample.servers = runtime.servers ?? [];
        this.#samples.set(sample.id, sample);
        return true;
      }
      case 'selectionPending': {
        const one = data as Slices['pendingSelections'][number];
        const others = this.current.pendingSelections.filter((other) => other.requestId !== one.requestId);
        this.current.pendingSelections = this.#slices.pendingSelections = [...others, one];
        return true;
      }
      case 'selectionResolved': {
        const { requestId } = data as { requestId: string };
        const others = this.current.pendingSelections.filter((other) => other.requestId !== requestId);
        this.current.pendingSelections = this.#slices.pendingSelections = others;
        return true;
      }
      case 'snapshotReplaced':
      case 'daemonSnapshotReplaced':
        return false;
    }
    if (type === 'rssItemsChanged') {
      const { sourceId, itemRevision } = data as { sourceId: string; itemRevision: number };
      const revisions = { ...this.current.rssItemRevisions, [sourceId]: itemRevision };
      this.current.rssItemRevisions = this.#slices.rssItemRevisions = revisions;
    }
    if (passed.has(type)) {
      this.#events.push({ type, data });
      if (this.#events.length > MAX_EVENTS) this.#events.shift();
    }
    return true;
  }

  #row(task: Changed): void {
    this.#rows.set(task.taskId, rowOf(task));
  }

  #delete(id: string): void {
    this.#rows.set(id, null);
    this.#samples.delete(id);
  }

  get isEmpty(): boolean {
    return (
      this.#rows.size === 0 && this.#samples.size === 0 && this.#events.length === 0 && Object.keys(this.#slices).length === 0
    );
  }

  take(): Batch {
    const batch: Batch = { rows: [], deleted: [], samples: [...this.#samples.values()], slices: this.#slices, events: this.#events };
    for (const [id, row] of this.#rows) {
      if (row) batch.rows.push(row);
      else batch.deleted.push(id);
    }
    this.clear();
    return batch;
  }

  clear(): void {
    this.#rows = new Map();
    this.#samples = new Map();
    this.#slices = {};
    this.#events = [];
  }
}
