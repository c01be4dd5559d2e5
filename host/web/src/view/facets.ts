// How many tasks there are of each state, queue, group, site and kind.
import { Flag, mediaKinds, type MediaKind } from '../rpc/row';
import type { Store } from '../store/store';
import { stateOf, type State } from './filter';

export interface Facets {
  all: number;
  states: Record<State, number>;
  queues: Map<string, number>;
  groups: Map<string, number>;
  sites: Map<string, number>;
  tags: Map<string, number>;
  kinds: Map<MediaKind | 'torrent', number>;
}

function counted(numbers: Uint32Array, texts: readonly string[]): Map<string, number> {
  const map = new Map<string, number>();
  numbers.forEach((count, at) => {
    if (count > 0 && texts[at] !== '') map.set(texts[at]!, count);
  });
  return map;
}

export function count(store: Store): Facets {
  const c = store.columns;
  const states: Facets['states'] = { active: 0, waiting: 0, paused: 0, failed: 0, done: 0, seeding: 0, missing: 0, login: 0 };
  const queues = new Uint32Array(c.queues.texts.length);
  const groups = new Uint32Array(c.groups.texts.length);
  const sites = new Uint32Array(c.sites.texts.length);
  const tagSets = new Uint32Array(c.tagSets.texts.length);
  const media = new Uint32Array(mediaKinds.length);
  let torrents = 0;
  let all = 0;
  for (let slot = 0; slot < c.length; slot++) {
    if (c.ids[slot] === '') continue;
    all++;
    states[stateOf(c.status[slot]!)]++;
    const flags = c.flags[slot]!;
    if (flags & Flag.seeding) states.seeding++;
    if (flags & Flag.fileMissing) states.missing++;
    if (flags & Flag.loginNeed) states.login++;
    if (flags & Flag.torrent) torrents++;
    queues[c.queue[slot]!]!++;
    groups[c.group[slot]!]!++;
    sites[c.site[slot]!]!++;
    tagSets[c.tags[slot]!]!++;
    media[c.media[slot]!]!++;
  }
  const tags = new Map<string, number>();
  for (const [set, number] of counted(tagSets, c.tagSets.texts)) for (const tag of set.split('\n')) tags.set(tag, (tags.get(tag) ?? 0) + number);
  const kinds: Facets['kinds'] = new Map();
  if (torrents > 0) kinds.set('torrent', torrents);
  media.forEach((number, at) => number > 0 && kinds.set(mediaKinds[at]!, number));
  return { all, states, queues: counted(queues, c.queues.texts), groups: counted(groups, c.groups.texts), sites: counted(sites, c.sites.texts), tags, kinds };
}

/** The largest first. */
export function largest<K>(counts: ReadonlyMap<K, number>, most: number): [K, number][] {
  return [...counts].sort((a, b) => b[1] - a[1] || (String(a[0]) < String(b[0]) ? -1 : 1)).slice(0, most);
}
