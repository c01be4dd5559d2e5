// The page's projection of the service: columns of tasks and the small parts. No DOM, no clock, no framework.
import { Columns, type Packed } from '../rpc/columns';
import { noSlices, type Batch, type Slices } from '../rpc/messages';
import type { Row, Sample } from '../rpc/row';
import type { ServerDto } from '../rpc/rpc';

/** What changed since it was last asked for. */
export interface Changes {
  /** All is new: slots have no meaning from before. */
  isAll: boolean;
  /** Slots whose row changed, appeared or vanished. */
  rows: Set<number>;
  /** Slots of which only live numbers changed. */
  samples: Set<number>;
}

export class Store {
  columns = new Columns();
  slices: Slices = { ...noSlices };
  /** Grows with every change of a slot. */
  version = new Uint32Array(this.columns.capacity);
  segments = new Map<number, Float64Array>();
  /** Of the task that is watched. */
  servers: ServerDto[] = [];
  #slots = new Map<string, number>();
  #free: number[] = [];
  #changes: Changes = { isAll: true, rows: new Set(), samples: new Set() };

  get size(): number {
    return this.#slots.size;
  }

  slot(id: string): number | undefined {
    return this.#slots.get(id);
  }

  /** Slots in use, in no order. */
  slots(): Iterable<number> {
    return this.#slots.values();
  }

  isUsed(slot: number): boolean {
    return slot < this.columns.length && this.columns.ids[slot] !== '';
  }

  snapshot(packed: Packed, slices: Slices, samples: readonly Sample[]): void {
    this.columns = Columns.unpack(packed);
    this.version = new Uint32Array(this.columns.capacity);
    this.segments = new Map();
    this.slices = slices;
    this.#free = [];
    this.#slots = new Map();
    for (let slot = 0; slot < packed.length; slot++) this.#slots.set(this.columns.ids[slot]!, slot);
    this.#changes = { isAll: true, rows: new Set(), samples: new Set() };
    for (const sample of samples) this.#sample(sample);
  }

  apply(batch: Batch): void {
    for (const row of batch.rows) this.#row(row);
    for (const id of batch.deleted) this.#delete(id);
    for (const sample of batch.samples) this.#sample(sample);
    this.slices = { ...this.slices, ...batch.slices };
  }

  /** What changed since the last call. */
  changed(): Changes {
    const changes = this.#changes;
    this.#changes = { isAll: false, rows: new Set(), samples: new Set() };
    return changes;
  }

  #touch(slot: number): void {
    this.version[slot]!++;
  }

  #row(row: Row): void {
    let slot = this.#slots.get(row.id);
    if (slot === undefined) {
      slot = this.#free.pop() ?? this.columns.length;
      this.#slots.set(row.id, slot);
    }
    const { columns } = this;
    columns.put(slot, row);
    if (columns.capacity > this.version.length) {
      const more = new Uint32Array(columns.capacity);
      more.set(this.version);
      this.version = more;
    }
    // Only what runs has a rate: the last sample of a task that stopped says nothing.
    if (row.status !== 1 && row.status !== 5) this.#still(slot, (row.flags & 4) !== 0);
    this.#touch(slot);
    this.#changes.rows.add(slot);
  }

  #still(slot: number, isSeeding: boolean): void {
    this.columns.down[slot] = 0;
    this.columns.connections[slot] = 0;
    if (!isSeeding) {
      this.columns.up[slot] = 0;
      this.columns.peers[slot] = 0;
    }
    this.segments.delete(slot);
  }

  #delete(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#slots.delete(id);
    this.columns.clear(slot);
    this.segments.delete(slot);
    this.#free.push(slot);
    this.#touch(slot);
    this.#changes.rows.add(slot);
  }

  #sample(sample: Sample): void {
    const slot = this.#slots.get(sample.id);
    if (slot === undefined) return;
    const { columns } = this;
    columns.done[slot] = sample.done;
    if (sample.total > 0) columns.total[slot] = sample.total;
    columns.down[slot] = sample.down;
    columns.up[slot] = sample.up;
    columns.connections[slot] = sample.connections;
    columns.peers[slot] = sample.peers;
    if (sample.segments.length > 0) this.segments.set(slot, sample.segments);
    if (sample.servers) this.servers = sample.servers;
    this.#touch(slot);
    this.#changes.samples.add(slot);
  }
}
