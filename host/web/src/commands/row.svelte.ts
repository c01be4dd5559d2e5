// A row as it is shown: the slot's columns put into words.
import { t, type PlainKey } from '../i18n/index.svelte';
import { Flag, mediaKinds, Status } from '../rpc/row';
import { failureKinds, type FailureKind } from '../rpc/rpc';
import { failures, type Remedy } from '../view/failures';
import { stateOf, type State } from '../view/filter';
import { spans, type Span } from '../view/segments';
import { progress, secondsLeft } from '../view/sort';
import { formats } from './formats.svelte';
import { queueName } from './queues';
import { session } from './session.svelte';

export interface Shown {
  id: string;
  name: string;
  state: State;
  /** The state in words, with its cause if it failed. */
  word: string;
  site: string;
  queue: string;
  order: number;
  kind: string;
  share: number;
  isPartial: boolean;
  isRunning: boolean;
  parts: Span[];
  stripLabel: string;
  amount: string;
  size: string;
  speed: string;
  isSlow: boolean;
  left: string;
  added: string;
  finished: string;
  /** What helps, if it failed. */
  remedy: Remedy | null;
}

const words: Record<State, PlainKey> = {
  active: 'state.active', waiting: 'state.waiting', paused: 'state.paused', failed: 'state.failed', done: 'state.done', seeding: 'state.seeding',
  missing: 'state.missing', login: 'state.login',
};

export function word(state: State): string {
  return t(words[state]);
}

/** What the kind of a failure means, if the page has words for it. */
export function cause(kind: string): string {
  return kind in failures ? t(failures[kind as FailureKind].text) : kind;
}

export function shownState(status: number, flags: number): State {
  if (flags & Flag.loginNeed && status !== Status.completed && status !== Status.downloading) return 'login';
  if (flags & Flag.fileMissing && status === Status.completed) return 'missing';
  if (flags & Flag.seeding && status === Status.completed) return 'seeding';
  return stateOf(status);
}

export function show(slot: number): Shown {
  const { store } = session;
  const c = store.columns;
  const f = formats();
  const status = c.status[slot]!;
  const state = shownState(status, c.flags[slot]!);
  const [total, done] = [c.total[slot]!, c.done[slot]!];
  const share = progress(store, slot);
  const isLive = session.isLive;
  const isRunning = status === Status.downloading;
  const kind = failureKinds[c.error[slot]! - 1];
  const failure = kind ? failures[kind] : null;
  const isPartial = status !== Status.completed && (done > 0 || isRunning);
  const segments = store.segments.get(slot);
  let active = 0;
  if (segments) for (let at = 3; at < segments.length; at += 4) active += segments[at]!;
  let text = status === Status.preparing ? t('state.preparing') : word(state);
  if (failure) text = cause(kind!);
  if (status === Status.pending && c.retryAt[slot]! > 0) {
    const when = t('state.retryIn', { when: f.relative(Math.max(0, c.retryAt[slot]! - Date.now() / 1000)) });
    text = failure ? `${text} · ${when}` : when;
  }
  const queue = store.slices.queues.find((one) => one.queueId === c.queues.texts[c.queue[slot]!]);
  const rate = state === 'seeding' ? c.up[slot]! : c.down[slot]!;
  return {
    id: c.ids[slot]!,
    name: c.names[slot]!,
    state,
    word: text,
    site: c.sites.texts[c.site[slot]!]!,
    queue: queue ? queueName(queue) : '',
    order: c.order[slot]!,
    kind: t(`kind.${mediaKinds[c.media[slot]!]!}`),
    share,
    isPartial,
    isRunning,
    parts: isPartial ? spans(segments, done, total, isRunning && isLive) : [],
    stripLabel: segments ? t('tasks.segments', { percent: f.percent(share), active, count: segments.length / 4 }) : f.percent(share),
    amount: status === Status.completed ? f.bytes(total || done) : total > 0 ? t('tasks.of', { done: f.bytes(done), total: f.bytes(total) }) : done > 0 ? f.bytes(done) : '–',
    size: total > 0 ? f.bytes(total) : '–',
    speed: !isLive ? '–' : isRunning || rate > 0 ? f.rate(rate) : '',
    isSlow: rate === 0,
    left: isRunning && isLive ? f.duration(secondsLeft(store, slot)) : '',
    added: f.when(c.created[slot]!, Date.now()),
    finished: c.completed[slot]! > 0 ? f.when(c.completed[slot]!, Date.now()) : '',
    remedy: status === Status.error && failure ? failure.remedies[0] : null,
  };
}
