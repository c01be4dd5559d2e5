// The slots that the list shows, in order: kept up to date by merging, never sorted as a whole for a few changes.
import type { Changes, Store } from '../store/store';

export type Test = (slot: number) => boolean;
export type Compare = (a: number, b: number) => number;

/** With more changed slots than this, sorting anew is quicker than merging. */
const MERGED = 4096;

export class List {
  slots = new Uint32Array(0);
  length = 0;
  /** While rows are held still, whether the order is another one by now. */
  isStale = false;
  #test: Test = () => true;
  #compare: Compare = () => 0;
  #waiting = new Set<number>();

  constructor(private readonly store: Store) {}

  /** Another filter or order, or all is new. */
  rebuild(test: Test, compare: Compare): void {
    this.#test = test;
    this.#compare = compare;
    this.#waiting.clear();
    this.isStale = false;
    const found = new Uint32Array(this.store.size);
    let length = 0;
    for (const slot of this.store.slots()) if (test(slot)) found[length++] = slot;
    this.slots = found.subarray(0, length).sort(compare);
    this.length = length;
  }

  /**
   * Takes changes over. `isLive`: the order depends on live numbers. `isHeld`: the pointer is over the list, so rows keep
   * their places; only what was deleted goes. Returns whether the slots or their order changed.
   */
  update(changes: Pick<Changes, 'rows' | 'samples'>, isLive: boolean, isHeld: boolean): boolean {
    for (const slot of changes.rows) this.#waiting.add(slot);
    if (isLive) for (const slot of changes.samples) this.#waiting.add(slot);
    if (this.#waiting.size === 0) return false;
    if (isHeld) return this.#hold();
    const changed = this.#waiting;
    this.#waiting = new Set();
    this.isStale = false;
    if (changed.size > MERGED) {
      this.rebuild(this.#test, this.#compare);
      return true;
    }
    return this.#merge(changed);
  }

  #hold(): boolean {
    const before = this.length;
    const gone = [...this.#waiting].filter((slot) => !this.store.isUsed(slot));
    if (gone.length > 0) this.#remove(new Set(gone));
    for (const slot of gone) this.#waiting.delete(slot);
    if (!this.isStale) this.isStale = this.#isElsewhere();
    return this.length !== before;
  }

  /** Whether a held slot would now be in another place. */
  #isElsewhere(): boolean {
    if (this.#waiting.size === 0) return false;
    const places = new Map<number, number>();
    for (let at = 0; at < this.length; at++) if (this.#waiting.has(this.slots[at]!)) places.set(this.slots[at]!, at);
    for (const slot of this.#waiting) {
      const at = places.get(slot);
      if ((at !== undefined) !== this.#test(slot)) return true;
      if (at === undefined) continue;
      if (at > 0 && this.#compare(this.slots[at - 1]!, slot) > 0) return true;
      if (at < this.length - 1 && this.#compare(slot, this.slots[at + 1]!) > 0) return true;
    }
    return false;
  }

  #remove(slots: ReadonlySet<number>): void {
    let kept = 0;
    for (let at = 0; at < this.length; at++) if (!slots.has(this.slots[at]!)) this.slots[kept++] = this.slots[at]!;
    this.length = kept;
  }

  #merge(changed: ReadonlySet<number>): boolean {
    const before = this.slots.slice(0, this.length);
    this.#remove(changed);
    const coming = [...changed].filter((slot) => this.store.isUsed(slot) && this.#test(slot)).sort(this.#compare);
    const length = this.length + coming.length;
    const merged = length <= this.slots.length ? this.slots : new Uint32Array(Math.ceil(length * 1.25));
    if (merged !== this.slots) merged.set(this.slots.subarray(0, this.length));
    let [from, to] = [this.length - 1, length - 1];
    for (let at = coming.length - 1; at >= 0; at--) {
      while (from >= 0 && this.#compare(merged[from]!, coming[at]!) > 0) merged[to--] = merged[from--]!;
      merged[to--] = coming[at]!;
    }
    this.slots = merged;
    this.length = length;
    if (length !== before.length) return true;
    for (let at = 0; at < length; at++) if (before[at] !== merged[at]) return true;
    return false;
  }

  at(index: number): number | undefined {
    return index >= 0 && index < this.length ? this.slots[index] : undefined;
  }

  indexOf(slot: number): number {
    const at = this.slots.subarray(0, this.length).indexOf(slot);
    return at;
  }
}
