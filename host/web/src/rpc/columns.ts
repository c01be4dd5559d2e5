// Tasks as columns: a slot for each task, the same arrays in the worker that fills them and in the store that reads them.
import type { Row } from './row';

/** Texts by number. The number of a text never changes. */
export class Interned {
  readonly texts: string[];
  #numbers = new Map<string, number>();

  constructor(texts: readonly string[] = ['']) {
    this.texts = [...texts];
    this.texts.forEach((text, at) => this.#numbers.set(text, at));
  }

  number(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.texts.length);
    return this.texts.push(text) - 1;
  }

  /** The number of a known text. */
  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }
}

export interface Packed {
  length: number;
  ids: string[];
  names: string[];
  total: Float64Array;
  done: Float64Array;
  created: Float64Array;
  completed: Float64Array;
  retryAt: Float64Array;
  link: Float64Array;
  order: Uint32Array;
  group: Uint32Array;
  site: Uint32Array;
  tags: Uint32Array;
  queue: Uint16Array;
  status: Uint8Array;
  error: Uint8Array;
  flags: Uint8Array;
  media: Uint8Array;
  tagSets: string[];
  queues: string[];
  groups: string[];
  sites: string[];
}

const wide = ['total', 'done', 'created', 'completed', 'retryAt', 'link', 'down', 'up'] as const;
const counts = ['order', 'group', 'site', 'tags', 'connections', 'peers'] as const;
const bytes = ['status', 'error', 'flags', 'media'] as const;

export class Columns {
  capacity: number;
  /** Slots in use are below this, but for the free ones. */
  length = 0;
  ids: string[] = [];
  names: string[] = [];
  total: Float64Array;
  done: Float64Array;
  created: Float64Array;
  completed: Float64Array;
  retryAt: Float64Array;
  link: Float64Array;
  down: Float64Array;
  up: Float64Array;
  order: Uint32Array;
  group: Uint32Array;
  site: Uint32Array;
  tags: Uint32Array;
  connections: Uint32Array;
  peers: Uint32Array;
  queue: Uint16Array;
  status: Uint8Array;
  error: Uint8Array;
  flags: Uint8Array;
  media: Uint8Array;
  /** Each set of tags that occurs, one tag on each line. */
  tagSets = new Interned();
  queues = new Interned();
  groups = new Interned();
  sites = new Interned();

  constructor(capacity = 1024) {
    this.capacity = capacity;
    this.total = new Float64Array(capacity);
    this.done = new Float64Array(capacity);
    this.created = new Float64Array(capacity);
    this.completed = new Float64Array(capacity);
    this.retryAt = new Float64Array(capacity);
    this.link = new Float64Array(capacity);
    this.down = new Float64Array(capacity);
    this.up = new Float64Array(capacity);
    this.order = new Uint32Array(capacity);
    this.group = new Uint32Array(capacity);
    this.site = new Uint32Array(capacity);
    this.tags = new Uint32Array(capacity);
    this.connections = new Uint32Array(capacity);
    this.peers = new Uint32Array(capacity);
    this.queue = new Uint16Array(capacity);
    this.status = new Uint8Array(capacity);
    this.error = new Uint8Array(capacity);
    this.flags = new Uint8Array(capacity);
    this.media = new Uint8Array(capacity);
  }

  reserve(capacity: number): void {
    if (capacity <= this.capacity) return;
    let size = this.capacity;
    while (size < capacity) size *= 2;
    for (const name of wide) this[name] = grown(this[name], new Float64Array(size));
    for (const name of counts) this[name] = grown(this[name], new Uint32Array(size));
    for (const name of bytes) this[name] = grown(this[name], new Uint8Array(size));
    this.queue = grown(this.queue, new Uint16Array(size));
    this.capacity = size;
  }

  put(slot: number, row: Row): void {
    this.reserve(slot + 1);
    if (slot >= this.length) this.length = slot + 1;
    this.ids[slot] = row.id;
    this.names[slot] = row.name;
    this.total[slot] = row.total;
    this.done[slot] = row.done;
    this.created[slot] = row.created;
    this.completed[slot] = row.completed;
    this.retryAt[slot] = row.retryAt;
    this.link[slot] = row.link;
    this.order[slot] = row.order;
    this.group[slot] = this.groups.number(row.group);
    this.site[slot] = this.sites.number(row.site);
    this.tags[slot] = this.tagSets.number(row.tags);
    this.queue[slot] = this.queues.number(row.queue);
    this.status[slot] = row.status;
    this.error[slot] = row.error;
    this.flags[slot] = row.flags;
    this.media[slot] = row.media;
  }

  clear(slot: number): void {
    this.ids[slot] = '';
    this.names[slot] = '';
    for (const name of wide) this[name][slot] = 0;
    for (const name of counts) this[name][slot] = 0;
    for (const name of bytes) this[name][slot] = 0;
    this.queue[slot] = 0;
  }

  /** The used part, to be sent to another thread together with the buffers to hand over. */
  pack(): { packed: Packed; transfer: ArrayBuffer[] } {
    const n = this.length;
    const packed: Packed = {
      length: n,
      ids: this.ids,
      names: this.names,
      total: this.total.slice(0, n),
      done: this.done.slice(0, n),
      created: this.created.slice(0, n),
      completed: this.completed.slice(0, n),
      retryAt: this.retryAt.slice(0, n),
      link: this.link.slice(0, n),
      order: this.order.slice(0, n),
      group: this.group.slice(0, n),
      site: this.site.slice(0, n),
      tags: this.tags.slice(0, n),
      queue: this.queue.slice(0, n),
      status: this.status.slice(0, n),
      error: this.error.slice(0, n),
      flags: this.flags.slice(0, n),
      media: this.media.slice(0, n),
      tagSets: this.tagSets.texts,
      queues: this.queues.texts,
      groups: this.groups.texts,
      sites: this.sites.texts,
    };
    const transfer = Object.values(packed)
      .filter((value): value is Float64Array<ArrayBuffer> => ArrayBuffer.isView(value))
      .map((value) => value.buffer);
    return { packed, transfer };
  }

  static unpack(packed: Packed): Columns {
    const columns = new Columns(Math.max(1024, Math.ceil(packed.length * 1.25)));
    const { length, ids, names, tagSets, queues, groups, sites, ...arrays } = packed;
    for (const [name, values] of Object.entries(arrays)) {
      (columns[name as keyof typeof arrays] as Float64Array).set(values as Float64Array);
    }
    columns.length = length;
    columns.ids = ids;
    columns.names = names;
    columns.tagSets = new Interned(tagSets);
    columns.queues = new Interned(queues);
    columns.groups = new Interned(groups);
    columns.sites = new Interned(sites);
    return columns;
  }
}

function grown<T extends Float64Array | Uint32Array | Uint16Array | Uint8Array>(from: T, to: T): T {
  to.set(from as never);
  return to;
}
