// The list of tasks as it is shown: filter and order from the route, the selection, and what was asked to be hidden.
import { untrack } from 'svelte';
import { locale } from '../i18n/index.svelte';
import type { Changes } from '../store/store';
import { count, type Facets } from '../view/facets';
import { compile, parse, print, type Token } from '../view/filter';
import { List } from '../view/list';
import * as select from '../view/selection';
import { comparison, liveKeys, parseSorts, printSorts, type Sort } from '../view/sort';
import { route } from './route.svelte';
import { session } from './session.svelte';

const DEFAULT_SORT = '-added';
/** Live numbers change the order at most once a second. */
const LIVE_EVERY = 1000;
/** How long the rows of added tasks may take from the answer to the list. */
const FREE_MS = 1000;

class Tasks {
  readonly list = new List(session.store);
  /** Grows when rows come, go or move. */
  version = $state(0);
  /** Grows with every frame in which a row changed. */
  tick = $state(0);
  facets = $state.raw<Facets>(count(session.store));
  selection = $state.raw(select.nothing);
  /** Ids that are not shown because they are about to be removed. */
  hidden = $state.raw<ReadonlySet<string>>(new Set());
  isStale = $state(false);
  #isHeld = false;
  #freeUntil = 0;
  /** Where the active row is, for its neighbour once it is gone. */
  #lastActiveAt = 0;
  #liveAt = 0;
  #later: ReturnType<typeof setTimeout> | undefined;

  readonly filter = $derived(route.name === 'tasks' ? (route.query.get('f') ?? '') : '');
  readonly tokens: readonly Token[] = $derived(parse(this.filter));
  readonly sortText = $derived(route.query.get('s') ?? DEFAULT_SORT);
  readonly sorts: readonly Sort[] = $derived(parseSorts(this.sortText));

  // By themselves: the slices are replaced together, by every change of the rates for example.
  readonly #queues = $derived(session.slices.queues);
  readonly #groups = $derived(session.slices.groups);

  constructor() {
    session.onFrame((changes) => this.#frame(changes));
    $effect.root(() => {
      $effect(() => {
        void [this.tokens, this.sorts, this.hidden, this.#queues, this.#groups, locale()];
        untrack(() => this.rebuild());
      });
    });
  }

  rebuild(): void {
    const { store } = session;
    const test = compile(this.tokens, store, Date.now() / 1000);
    const { hidden } = this;
    const { ids } = store.columns;
    const shown = hidden.size === 0 ? test : (slot: number) => !hidden.has(ids[slot]!) && test(slot);
    this.list.rebuild(shown, comparison(this.sorts, store, locale()));
    this.isStale = false;
    bump(this);
  }

  setFilter(tokens: readonly Token[]): void {
    route.change({ f: print(tokens) || null });
  }

  setSorts(sorts: readonly Sort[]): void {
    const text = printSorts(sorts);
    route.change({ s: text === DEFAULT_SORT ? null : text });
  }

  /** While the pointer is over the list, a menu is open or a drag runs, rows keep their places. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld && this.isStale) this.settle();
  }

  /** The user has added tasks and looks for them: they appear at once, wherever the pointer is. */
  free(): void {
    this.#freeUntil = performance.now() + FREE_MS;
    if (this.isStale) this.settle();
  }

  /** Applies the order that was held back. */
  settle(): void {
    this.list.update({ rows: new Set(), samples: new Set() }, true, false);
    this.isStale = false;
    bump(this);
  }

  #frame(changes: Changes): void {
    if (changes.isAll) {
      this.facets = count(session.store);
      this.rebuild();
      this.#forget();
      return;
    }
    const isLiveSorted = this.sorts.some((sort) => liveKeys.has(sort.key));
    const now = performance.now();
    const isLive = isLiveSorted && now - this.#liveAt >= LIVE_EVERY;
    if (isLive) this.#liveAt = now;
    // In an empty list there is nothing that could move away.
    const isMoved = this.list.update(changes, isLive, this.#isHeld && this.list.length > 0 && now >= this.#freeUntil);
    this.isStale = this.list.isStale;
    if (changes.rows.size > 0) {
      this.#forget();
      clearTimeout(this.#later);
      this.facets = count(session.store);
    }
    if (isMoved) bump(this);
    else this.tick++;
  }

  /** Drops what no longer exists from the selection; the active row goes to its neighbour. */
  #forget(): void {
    const exists = (id: string): boolean => session.store.slot(id) !== undefined;
    const at = Math.min(this.#lastActiveAt, this.list.length - 1);
    const neighbour = at >= 0 ? this.idAt(at) : null;
    this.selection = select.without(this.selection, exists, neighbour);
    if ([...this.hidden].some((id) => !exists(id))) this.hidden = new Set([...this.hidden].filter(exists));
  }

  idAt(index: number): string | null {
    const slot = this.list.at(index);
    return slot === undefined ? null : (session.store.columns.ids[slot] ?? null);
  }

  indexOf(id: string | null): number {
    const slot = id === null ? undefined : session.store.slot(id);
    return slot === undefined ? -1 : this.list.indexOf(slot);
  }

  /** All ids that match, in order. */
  order(): string[] {
    const { ids } = session.store.columns;
    return Array.from(this.list.slots.subarray(0, this.list.length), (slot) => ids[slot]!);
  }

  selectOnly(id: string): void {
    this.#select(select.only(id));
  }

  toggle(id: string): void {
    this.#select(select.toggled(this.selection, id));
  }

  range(id: string, isAdded = false): void {
    this.#select(select.ranged(this.selection, id, this.order(), isAdded));
  }

  activate(id: string | null): void {
    this.#select(select.moved(this.selection, id));
  }

  selectAll(): void {
    this.#select({ ...this.selection, ids: new Set(this.order()) });
  }

  clear(): void {
    this.#select({ ...this.selection, ids: new Set(), anchor: null });
  }

  #select(selection: select.Selection): void {
    this.selection = selection;
    const at = this.indexOf(selection.active);
    if (at >= 0) this.#lastActiveAt = at;
  }

  /** What a command acts on: the selection, or the active row. */
  targets(): string[] {
    if (this.selection.ids.size > 0) return [...this.selection.ids];
    return this.selection.active === null ? [] : [this.selection.active];
  }

  /** Slots of ids that exist. */
  slots(ids: readonly string[]): number[] {
    return ids.map((id) => session.store.slot(id)).filter((slot) => slot !== undefined);
  }

  hide(ids: readonly string[]): void {
    this.hidden = new Set([...this.hidden, ...ids]);
    const selected = new Set(this.selection.ids);
    for (const id of ids) selected.delete(id);
    const isActiveGone = this.selection.active !== null && ids.includes(this.selection.active);
    const next = isActiveGone ? this.#neighbour(new Set(ids)) : this.selection.active;
    this.#select({ ids: selected, anchor: null, active: next });
  }

  #neighbour(gone: ReadonlySet<string>): string | null {
    for (let at = this.#lastActiveAt; at < this.list.length; at++) {
      const id = this.idAt(at);
      if (id !== null && !gone.has(id)) return id;
    }
    for (let at = Math.min(this.#lastActiveAt, this.list.length - 1); at >= 0; at--) {
      const id = this.idAt(at);
      if (id !== null && !gone.has(id)) return id;
    }
    return null;
  }

  unhide(ids: readonly string[]): void {
    const hidden = new Set(this.hidden);
    for (const id of ids) hidden.delete(id);
    this.hidden = hidden;
  }
}

/** Called from effects too, which must not depend on what they change. */
function bump(tasks: Tasks): void {
  untrack(() => {
    tasks.version++;
    tasks.tick++;
  });
}

export const tasks = new Tasks();
