// What the user prefers: kept by the service, one set for each class of device, so that it follows the user. What must be
// right before the service answers is also kept in this browser.
import { session } from './session.svelte';
import { sortKeys, type SortKey } from '../view/sort';
import type { Units } from '../view/format';

export interface SavedView {
  name: string;
  filter: string;
  sort: string;
}

export interface ColumnState {
  key: SortKey;
  isShown: boolean;
  /** In pixels; 0: its own. */
  width: number;
}

export interface Values {
  theme: 'system' | 'light' | 'dark';
  density: 'comfortable' | 'compact';
  language: string;
  units: Units;
  singleKeys: boolean;
  isRailFolded: boolean;
  drawerWidth: number;
  columns: ColumnState[];
  views: SavedView[];
  folders: string[];
  notifyFinished: boolean;
}

const shown: readonly SortKey[] = ['progress', 'speed', 'left', 'queue'];

export const defaults: Values = {
  theme: 'system', density: 'comfortable', language: '', units: 'binary', singleKeys: true, isRailFolded: false, drawerWidth: 480,
  columns: sortKeys.filter((key) => key !== 'name').map((key) => ({ key, isShown: shown.includes(key), width: 0 })),
  views: [], folders: [], notifyFinished: false,
};

const early = ['theme', 'density', 'language', 'isRailFolded', 'units'] as const satisfies (keyof Values)[];
const LOCAL = 'svc.look';
const WAIT = 400;

class Preferences {
  readonly #class = matchMedia('(max-width: 639px)').matches ? 'web.phone' : 'web.desk';
  #local = $state.raw<Partial<Values>>(readLocal());
  /** Set here and not yet answered by the service. */
  #changed = $state.raw<Partial<Values>>({});
  #timer: ReturnType<typeof setTimeout> | undefined;

  get values(): Values {
    const kept = (session.slices.preferences.values as Record<string, unknown>)[this.#class];
    return { ...defaults, ...this.#local, ...(isObject(kept) ? kept : {}), ...this.#changed };
  }

  set<K extends keyof Values>(key: K, value: Values[K]): void {
    this.#changed = { ...this.#changed, [key]: value };
    if ((early as readonly string[]).includes(key)) {
      this.#local = { ...this.#local, [key]: value };
      localStorage.setItem(LOCAL, JSON.stringify(this.#local));
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#send(), WAIT);
  }

  async #send(): Promise<void> {
    if (!session.isLive) return;
    const sent = this.#changed;
    const kept = (session.slices.preferences.values as Record<string, unknown>)[this.#class];
    const value = { ...(isObject(kept) ? kept : {}), ...sent };
    await session.call('agent.preferences.patch', { values: { [this.#class]: value }, sync: false });
    if (this.#changed === sent) this.#changed = {};
  }
}

function isObject(value: unknown): value is Partial<Values> {
  return typeof value === 'object' && value !== null;
}

function readLocal(): Partial<Values> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(LOCAL) ?? '{}');
    if (!isObject(value)) return {};
    return Object.fromEntries(Object.entries(value).filter(([key]) => (early as readonly string[]).includes(key)));
  } catch {
    return {};
  }
}

export const preferences = new Preferences();
