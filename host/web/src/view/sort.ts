// Orders of tasks. Every order is total: the same tasks always come in the same order.
import { Status } from '../rpc/row';
import type { Store } from '../store/store';

export const sortKeys = ['order', 'added', 'finished', 'name', 'state', 'size', 'progress', 'speed', 'left', 'queue', 'site'] as const;
export type SortKey = (typeof sortKeys)[number];

export interface Sort {
  key: SortKey;
  isDescending: boolean;
}

/** Keys whose values change all the time. */
export const liveKeys: ReadonlySet<SortKey> = new Set(['progress', 'speed', 'left']);

export const MAX_SORTS = 3;

export function parseSorts(text: string): Sort[] {
  return text
    .split(',')
    .map((part) => ({ key: part.replace(/^-/, '') as SortKey, isDescending: part.startsWith('-') }))
    .filter(({ key }) => sortKeys.includes(key))
    .slice(0, MAX_SORTS);
}

export function printSorts(sorts: readonly Sort[]): string {
  return sorts.map(({ key, isDescending }) => (isDescending ? '-' : '') + key).join(',');
}

/** What a click on a column's head does: sort by it, then the other way round. With `isAdded`, beside the keys before. */
export function clicked(sorts: readonly Sort[], key: SortKey, isAdded: boolean): Sort[] {
  const old = sorts.find((sort) => sort.key === key);
  const isDescending = old ? !old.isDescending : key !== 'name' && key !== 'order' && key !== 'queue' && key !== 'site' && key !== 'state' && key !== 'left';
  if (!isAdded) return [{ key, isDescending }];
  if (old) return sorts.map((sort) => (sort.key === key ? { key, isDescending } : sort));
  return [...sorts, { key, isDescending }].slice(-MAX_SORTS);
}

// Running first, then what waits for a person, then what waits for itself.
const stateRank: Record<number, number> = {
  [Status.downloading]: 0, [Status.preparing]: 1, [Status.error]: 2, [Status.pending]: 3, [Status.paused]: 4, [Status.completed]: 5,
};

type Compare = (a: number, b: number) => number;

function compare(key: SortKey, store: Store, collator: Intl.Collator): Compare {
  const c = store.columns;
  switch (key) {
    case 'order': {
      const place = new Map(store.slices.queues.map((queue, at) => [c.queues.find(queue.queueId), at]));
      return (a, b) =>
        (place.get(c.queue[a]) ?? 0) - (place.get(c.queue[b]) ?? 0) || (c.order[a] || Infinity) - (c.order[b] || Infinity) || c.created[a]! - c.created[b]! || a - b;
    }
    case 'added':
      // Within a second: slots are given in the order of creation.
      return (a, b) => c.created[a]! - c.created[b]! || a - b;
    case 'finished':
      return (a, b) => c.completed[a]! - c.completed[b]!;
    case 'name':
      return (a, b) => collator.compare(c.names[a]!, c.names[b]!);
    case 'state':
      return (a, b) => stateRank[c.status[a]!]! - stateRank[c.status[b]!]!;
    case 'size':
      return (a, b) => c.total[a]! - c.total[b]!;
    case 'progress':
      return (a, b) => progress(store, a) - progress(store, b);
    case 'speed':
      return (a, b) => c.down[a]! - c.down[b]! || c.up[a]! - c.up[b]!;
    case 'left':
      return (a, b) => {
        const [x, y] = [secondsLeft(store, a), secondsLeft(store, b)];
        return x === y ? 0 : x - y;
      };
    case 'queue': {
      const names = new Map(store.slices.queues.map((queue) => [c.queues.find(queue.queueId), queue.name]));
      return (a, b) => collator.compare(names.get(c.queue[a]) ?? '', names.get(c.queue[b]) ?? '');
    }
    case 'site':
      return (a, b) => collator.compare(c.sites.texts[c.site[a]!]!, c.sites.texts[c.site[b]!]!);
  }
}

/** 0 to 1; 0 if the size is unknown. */
export function progress(store: Store, slot: number): number {
  const { total, done, status } = store.columns;
  if (status[slot] === Status.completed) return 1;
  return total[slot]! > 0 ? Math.min(1, done[slot]! / total[slot]!) : 0;
}

/** Infinity if it is unknown. */
export function secondsLeft(store: Store, slot: number): number {
  const { total, done, down, status } = store.columns;
  if (status[slot] !== Status.downloading || down[slot]! <= 0 || total[slot]! <= 0) return Infinity;
  return Math.max(0, total[slot]! - done[slot]!) / down[slot]!;
}

export function comparison(sorts: readonly Sort[], store: Store, language: string): Compare {
  const collator = new Intl.Collator(language, { numeric: true, sensitivity: 'base' });
  const parts = sorts.map((sort) => [compare(sort.key, store, collator), sort.isDescending ? -1 : 1] as const);
  const { created } = store.columns;
  return (a, b) => {
    for (const [part, sign] of parts) {
      const result = part(a, b);
      if (result !== 0) return result * sign;
    }
    return created[b]! - created[a]! || b - a;
  };
}
