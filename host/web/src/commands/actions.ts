// What can be done with tasks. A write's events come before its reply, so nothing is guessed; removal alone waits, so that
// it can be undone.
import { t } from '../i18n/index.svelte';
import { CallError } from '../rpc/client';
import { Status } from '../rpc/row';
import type { TaskDto } from '../rpc/rpc';
import { copyText } from './copy';
import { openable } from '../view/format';
import type { Remedy } from '../view/failures';
import { overlays } from './overlay.svelte';
import { route } from './route.svelte';
import { session } from './session.svelte';
import { tasks } from './tasks.svelte';
import { toasts } from './toasts.svelte';

/** A frame must stay under 1 MiB. */
const MAX_IDS = 20_000;
const UNDO_SECONDS = 8;

/** Runs and tells what failed. */
export async function attempt<T>(run: () => Promise<T>): Promise<T | null> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof CallError && error.code === 'unavailable' && !session.isLive) toasts.error(new Error(t('error.offline')));
    else toasts.error(error);
    return null;
  }
}

async function chunked(ids: readonly string[], run: (part: string[]) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < ids.length; at += MAX_IDS) await run(ids.slice(at, at + MAX_IDS));
}

function withStatus(ids: readonly string[], test: (status: number) => boolean): string[] {
  const { columns } = session.store;
  return tasks.slots(ids).filter((slot) => test(columns.status[slot]!)).map((slot) => columns.ids[slot]!);
}

export const isRunning = (status: number): boolean => status === Status.pending || status === Status.downloading || status === Status.preparing;
export const isHalted = (status: number): boolean => status === Status.paused || status === Status.error;

export function pause(ids: readonly string[]): Promise<unknown> {
  const { columns } = session.store;
  const running = tasks.slots(ids).filter((slot) => isRunning(columns.status[slot]!) || (columns.flags[slot]! & 4) !== 0);
  return attempt(() => chunked(running.map((slot) => columns.ids[slot]!), (taskIds) => session.call('daemon.task.pauseMany', { taskIds })));
}

export function resume(ids: readonly string[]): Promise<unknown> {
  // A task that waits for its next try is resumed too: it then tries at once.
  const halted = withStatus(ids, (status) => isHalted(status) || status === Status.pending);
  return attempt(() => chunked(halted, (taskIds) => session.call('daemon.task.resumeMany', { taskIds })));
}

export function toggle(ids: readonly string[]): Promise<unknown> {
  return withStatus(ids, isRunning).length > 0 ? pause(ids) : resume(ids);
}

/** Hides the rows and pauses what runs; the service is asked after eight seconds, so until then it can be undone. */
export async function remove(ids: readonly string[]): Promise<void> {
  const running = withStatus(ids, isRunning);
  tasks.hide(ids);
  const erase = (): void => {
    removeEventListener('pagehide', erase);
    void attempt(() => chunked(ids, (taskIds) => session.call('daemon.task.deleteMany', { taskIds, deleteFiles: false }))).then(() => tasks.unhide(ids));
  };
  const id = toasts.show(t('toast.removed', { count: ids.length }), {
    seconds: UNDO_SECONDS,
    gone: erase,
    action: {
      label: t('toast.undo'),
      run: () => {
        removeEventListener('pagehide', close);
        tasks.unhide(ids);
        void resume(running);
      },
    },
  });
  const close = (): void => toasts.close(id);
  addEventListener('pagehide', close, { once: true });
  if (running.length > 0) await pause(running);
}

/** Removes tasks and deletes their files, at once: the dialog before it said what. */
export async function removeWithFiles(ids: readonly string[]): Promise<void> {
  tasks.hide(ids);
  await attempt(() => chunked(ids, (taskIds) => session.call('daemon.task.deleteMany', { taskIds, deleteFiles: true })));
  tasks.unhide(ids);
}

export function boost(id: string): Promise<unknown> {
  return attempt(() => session.call('daemon.queue.boost', { id }));
}

export async function moveToQueue(ids: readonly string[], queueId: string): Promise<void> {
  await attempt(async () => {
    for (const taskId of ids) await session.call('daemon.queue.moveTask', { taskId, queueId });
  });
}

export type Step = 'top' | 'up' | 'down' | 'bottom';

/** The ids of a queue in its order. */
export function queueOrder(queueNumber: number): string[] {
  const { columns, store } = { columns: session.store.columns, store: session.store };
  const slots = [...store.slots()].filter((slot) => columns.queue[slot] === queueNumber && columns.status[slot] !== Status.completed);
  slots.sort((a, b) => (columns.order[a] || Infinity) - (columns.order[b] || Infinity) || columns.created[a]! - columns.created[b]! || a - b);
  return slots.map((slot) => columns.ids[slot]!);
}

/** The order after a step: the whole selection moves and keeps its own order. */
export function reordered(order: readonly string[], moved: ReadonlySet<string>, step: Step): string[] {
  const chosen = order.filter((id) => moved.has(id));
  const others = order.filter((id) => !moved.has(id));
  if (step === 'top') return [...chosen, ...others];
  if (step === 'bottom') return [...others, ...chosen];
  const first = order.findIndex((id) => moved.has(id));
  const last = order.findLastIndex((id) => moved.has(id));
  const before = order.slice(0, first).length;
  if (step === 'up') return placed(others, chosen, Math.max(0, before - 1));
  const after = order.slice(last + 1).length;
  return placed(others, chosen, Math.min(others.length, others.length - after + 1));
}

/** Puts `chosen` before the place `at` of `others`. */
export function placed(others: readonly string[], chosen: readonly string[], at: number): string[] {
  return [...others.slice(0, at), ...chosen, ...others.slice(at)];
}

export async function reorder(ids: readonly string[], step: Step): Promise<void> {
  const { columns } = session.store;
  const slots = tasks.slots(ids);
  const queues = new Set(slots.map((slot) => columns.queue[slot]!));
  await attempt(async () => {
    for (const queue of queues) {
      const moved = new Set(slots.filter((slot) => columns.queue[slot] === queue).map((slot) => columns.ids[slot]!));
      await session.call('daemon.queue.reorder', { queueId: columns.queues.texts[queue]!, taskIds: reordered(queueOrder(queue), moved, step) });
    }
  });
}

export function get(taskId: string): Promise<TaskDto> {
  return session.call('daemon.task.get', { taskId });
}

export async function change(taskId: string, changed: Record<string, unknown>, isResumed = true): Promise<boolean> {
  const done = await attempt(async () => {
    const { notice } = await session.call('daemon.task.change', { taskId, change: changed });
    if (notice) toasts.show(notice);
    if (isResumed) await session.call('daemon.task.resume', { taskId });
    return true;
  });
  return done === true;
}

export async function copy(text: string): Promise<void> {
  if (await copyText(text)) toasts.show(t('toast.copied'));
}

export async function copyLinks(ids: readonly string[]): Promise<void> {
  const links = await attempt(() => Promise.all(ids.slice(0, 100).map(async (id) => (await get(id)).url)));
  if (links) await copy(links.join('\n'));
}

/** A link without what may be secret: user, password and the values of its query. */
export function redacted(url: string): string {
  try {
    const parsed = new URL(url);
    parsed.username = '';
    parsed.password = '';
    for (const name of [...parsed.searchParams.keys()]) parsed.searchParams.set(name, '…');
    parsed.hash = '';
    return parsed.href;
  } catch {
    return url.split('?', 1)[0]!;
  }
}

async function copyReport(id: string): Promise<void> {
  const task = await attempt(() => get(id));
  if (!task) return;
  const lines = [
    `${t('report.title')}: ${session.server?.name ?? ''} ${session.server?.version ?? ''}`,
    `kind: ${task.errorKind}`,
    `message: ${task.errorMessage.replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, redacted)}`,
    `url: ${redacted(task.url)}`,
    `bytes: ${task.downloadedBytes} / ${task.totalBytes}`,
    `page: ${__VERSION__}, ${navigator.userAgent}`,
  ];
  await copy(lines.join('\n'));
}

/** The same download again from its first byte, in the place of the old one. */
export async function startOver(taskId: string): Promise<void> {
  await attempt(async () => {
    const request = await session.call('daemon.task.request', { taskId });
    await session.call('daemon.task.deleteMany', { taskIds: [taskId], deleteFiles: true });
    await session.call('daemon.task.create', { request });
    tasks.free();
  });
}

/** Opens the file on this device by a ticket that is good for one request. */
export async function save(taskId: string): Promise<void> {
  await attempt(async () => {
    const path = `/api/web/files/tasks/${taskId}`;
    const answer = await session.fetch('api/web/tickets', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ path }),
    });
    const said = (await answer.json()) as { ticket?: string; url?: string; message?: string };
    if (!answer.ok || (!said.ticket && !said.url)) throw new Error(said.message ?? t('error.offline'));
    const link = document.createElement('a');
    link.href = session.url(said.url ? said.url.replace(/^\//, '') : `${path.slice(1)}?ticket=${said.ticket}`);
    link.download = '';
    link.rel = 'noopener';
    link.click();
  });
}

/** Whether this browser is on the desktop of the service, which then opens files for it. */
export const canOpen = (): boolean => session.server?.capabilities.includes('agent.openFiles') === true;

/** Opens a finished file with the program of the desktop, or shows it in its folder. */
export function openFile(taskId: string, reveal: boolean): Promise<unknown> {
  return attempt(() => session.call('agent.task.open', { taskId, reveal }));
}

export async function openPage(id: string): Promise<void> {
  const task = await attempt(() => get(id));
  if (!task) return;
  const page = openable(task.referrer) ?? openable(task.originUrl) ?? openable(task.url);
  if (page) window.open(page, '_blank', 'noopener,noreferrer');
}

/** Does what a failure's button says. */
export async function remedy(what: Remedy, id: string): Promise<void> {
  switch (what) {
    case 'retry':
      await resume([id]);
      break;
    case 'replaceLink':
    case 'editLink':
      overlays.open({ kind: 'link', id });
      break;
    case 'openPage':
      await openPage(id);
      break;
    case 'signIn':
      overlays.open({ kind: 'signIn', id });
      break;
    case 'logIn':
    case 'plugin': {
      const task = await attempt(() => get(id));
      const plugin = task?.loginNeed?.identity;
      route.go(plugin ? `plugins/${encodeURIComponent(plugin)}/accounts` : 'plugins');
      break;
    }
    case 'retryOne':
      await change(id, { segments: 1, maxConnections: 1 });
      break;
    case 'copyReport':
      await copyReport(id);
      break;
    case 'startOver':
      overlays.open({ kind: 'startOver', id });
      break;
    case 'editChecksum':
      overlays.open({ kind: 'checksum', id });
      break;
    case 'otherFolder':
      overlays.open({ kind: 'folder', ids: [id] });
      break;
    case 'copyPath': {
      const task = await attempt(() => get(id));
      if (task) await copy(`${task.saveDir}/${task.fileName}`);
      break;
    }
    case 'rename':
      overlays.open({ kind: 'rename', id });
      break;
    case 'withoutPlugin':
      await attempt(() => session.call('daemon.plugin.ignoreRetry', { taskId: id }));
      break;
    case 'proxy':
      route.go('settings', { q: 'proxy' });
      break;
    case 'trust':
      overlays.open({ kind: 'trust', id });
      break;
  }
}
