// The filter language: free words and `is: queue: group: site: tag: kind: size:>1G added:<7d error:disk-full`, each with `-`
// in front to exclude. Values of one key are alternatives; different keys must all hold.
import { Flag, mediaKinds, Status } from '../rpc/row';
import { failureKinds } from '../rpc/rpc';
import type { Store } from '../store/store';

export const states = ['active', 'waiting', 'paused', 'failed', 'done', 'seeding', 'missing', 'login'] as const;
export type State = (typeof states)[number];

export type Key = 'is' | 'queue' | 'group' | 'site' | 'tag' | 'kind' | 'size' | 'added' | 'finished' | 'error';

export interface Token {
  /** Nothing for a free word. */
  key: Key | null;
  value: string;
  isNegated: boolean;
  /** Whether key and value mean something; the field marks what does not. */
  isKnown: boolean;
}

const keys: readonly string[] = ['is', 'queue', 'group', 'site', 'tag', 'kind', 'size', 'added', 'finished', 'error'] satisfies Key[];

/** Splits at spaces outside of double quotes. */
function pieces(text: string): string[] {
  const found: string[] = [];
  let piece = '';
  let isQuoted = false;
  for (const char of text) {
    if (char === '"') {
      isQuoted = !isQuoted;
      piece += char;
    } else if (/\s/.test(char) && !isQuoted) {
      if (piece !== '') found.push(piece);
      piece = '';
    } else {
      piece += char;
    }
  }
  if (piece !== '') found.push(piece);
  return found;
}

function bare(text: string): string {
  return text.replaceAll('"', '');
}

export function parse(text: string): Token[] {
  return pieces(text).flatMap((piece): Token[] => {
    const isNegated = piece.startsWith('-') && piece.length > 1;
    const rest = isNegated ? piece.slice(1) : piece;
    const colon = rest.indexOf(':');
    const key = colon > 0 && !rest.startsWith('"') ? rest.slice(0, colon).toLowerCase() : '';
    if (!keys.includes(key)) {
      const value = bare(rest);
      if (value === '') return [];
      // `name:` looks like a key: it is searched as text, and shown as unknown.
      return [{ key: null, value, isNegated, isKnown: !(colon > 0 && /^[a-z]+$/.test(key)) || /^[a-z]+:\/\//i.test(rest) || /^magnet:/i.test(rest) }];
    }
    const value = bare(rest.slice(colon + 1));
    return [{ key: key as Key, value, isNegated, isKnown: isMeant(key as Key, value) }];
  });
}

export function print(tokens: readonly Token[]): string {
  return tokens
    .map(({ key, value, isNegated }) => {
      const quoted = value === '' || /[\s"]/.test(value) || (key === null && (value.startsWith('-') || value.includes(':'))) ? `"${value}"` : value;
      return `${isNegated ? '-' : ''}${key === null ? '' : `${key}:`}${quoted}`;
    })
    .join(' ');
}

/** Adds a value, or removes it if it is there: what a click on a facet does. */
export function toggle(tokens: readonly Token[], key: Key, value: string): Token[] {
  const others = tokens.filter((token) => !(token.key === key && token.value === value && !token.isNegated));
  if (others.length < tokens.length) return others;
  return [...tokens, { key, value, isNegated: false, isKnown: true }];
}

function isMeant(key: Key, value: string): boolean {
  switch (key) {
    case 'is':
      return (states as readonly string[]).includes(value.toLowerCase());
    case 'kind':
      return (mediaKinds as readonly string[]).includes(value.toLowerCase()) || value.toLowerCase() === 'torrent';
    case 'error':
      return value === 'any' || (failureKinds as readonly string[]).includes(value.toLowerCase());
    case 'size':
      return size(value) !== null;
    case 'added':
    case 'finished':
      return age(value) !== null;
    default:
      return value !== '';
  }
}

interface Bound {
  isMore: boolean;
  limit: number;
}

const factors: Record<string, number> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** `>1G`, `<500k`, `2M` (at least). */
export function size(value: string): Bound | null {
  const found = /^([<>]?)=?(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(value);
  return found ? { isMore: found[1] !== '<', limit: Number(found[2]) * factors[found[3]!.toLowerCase()]! } : null;
}

const spans: Record<string, number> = { m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 };

/** `<7d`: within the last seven days; `>1h`: longer ago. In seconds. */
export function age(value: string): Bound | null {
  const found = /^([<>]?)=?(\d+(?:\.\d+)?)\s*([mhdwy])$/i.exec(value);
  return found ? { isMore: found[1] === '>', limit: Number(found[2]) * spans[found[3]!.toLowerCase()]! } : null;
}

export function stateOf(status: number): State {
  switch (status) {
    case Status.pending:
      return 'waiting';
    case Status.paused:
      return 'paused';
    case Status.completed:
      return 'done';
    case Status.error:
      return 'failed';
    default:
      return 'active';
  }
}

type Test = (slot: number) => boolean;

function test(token: Token, store: Store, now: number): Test {
  const { columns } = store;
  const value = token.value.toLowerCase();
  switch (token.key) {
    case null:
      return (slot) => columns.names[slot]!.toLowerCase().includes(value) || columns.sites.texts[columns.site[slot]!]!.includes(value);
    case 'is':
      if (value === 'seeding') return (slot) => (columns.flags[slot]! & Flag.seeding) !== 0;
      if (value === 'missing') return (slot) => (columns.flags[slot]! & Flag.fileMissing) !== 0;
      if (value === 'login') return (slot) => (columns.flags[slot]! & Flag.loginNeed) !== 0;
      return (slot) => stateOf(columns.status[slot]!) === value;
    case 'queue':
      return named(store.slices.queues.map(({ queueId, name }) => [queueId, name]), columns.queues, columns, 'queue', value);
    case 'group':
      return named(store.slices.groups.map(({ groupId, name }) => [groupId, name]), columns.groups, columns, 'group', value);
    case 'site':
      return (slot) => {
        const site = columns.sites.texts[columns.site[slot]!]!;
        return site === value || site.endsWith(`.${value}`);
      };
    case 'tag': {
      // Sets may come after the filter was compiled, so each is looked at when it is met first.
      const known: boolean[] = [];
      return (slot) => {
        const set = columns.tags[slot]!;
        return (known[set] ??= columns.tagSets.texts[set]!.toLowerCase().split('\n').includes(value));
      };
    }
    case 'kind': {
      if (value === 'torrent') return (slot) => (columns.flags[slot]! & Flag.torrent) !== 0;
      const wanted = mediaKinds.findIndex((kind) => kind === value);
      return (slot) => columns.media[slot] === wanted;
    }
    case 'error': {
      const wanted = failureKinds.findIndex((kind) => kind === value) + 1;
      return value === 'any' ? (slot) => columns.error[slot] !== 0 : (slot) => columns.error[slot] === wanted;
    }
    case 'size': {
      const { isMore, limit } = size(token.value)!;
      return isMore ? (slot) => columns.total[slot]! >= limit : (slot) => columns.total[slot]! > 0 && columns.total[slot]! < limit;
    }
    case 'added':
    case 'finished': {
      const { isMore, limit } = age(token.value)!;
      const times = token.key === 'added' ? 'created' : 'completed';
      const edge = now - limit;
      return (slot) => {
        const at = columns[times][slot]!;
        return at > 0 && (isMore ? at < edge : at >= edge);
      };
    }
  }
}

function named(
  all: (readonly [string, string])[],
  interned: Store['columns']['queues'],
  columns: Store['columns'],
  column: 'queue' | 'group',
  value: string,
): Test {
  const ids = new Set(all.filter(([id, name]) => id.toLowerCase() === value || name.toLowerCase() === value).map(([id]) => id));
  if (ids.size === 0 && column === 'group' && value === 'none') ids.add('');
  // By text: the first task of a queue may come after the filter was compiled.
  return (slot) => ids.has(interned.texts[columns[column][slot]!]!);
}

/** Compiles tokens to a test of slots. Unknown tokens with a key restrict nothing; the field shows them as unknown. */
export function compile(tokens: readonly Token[], store: Store, now: number): Test {
  const wanted = new Map<Key | string, Test[]>();
  const excluded: Test[] = [];
  tokens.forEach((token, at) => {
    if (token.key !== null && !token.isKnown) return;
    const one = test(token, store, now);
    if (token.isNegated) {
      excluded.push(one);
      return;
    }
    // Free words must all be found.
    const key = token.key ?? `word ${at}`;
    wanted.set(key, [...(wanted.get(key) ?? []), one]);
  });
  const groups = [...wanted.values()];
  return (slot) => groups.every((group) => group.some((one) => one(slot))) && !excluded.some((one) => one(slot));
}
