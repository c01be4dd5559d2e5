/// <reference lib="webworker" />
// Owns the socket: drives the machine, answers calls, and turns frames into batches for the page.
import { Columns } from './columns';
import { initial, step, type Input, type Machine } from './machine';
import { Merge, sampleOf } from './merge';
import { noSlices, type FromWorker, type Server, type Slices, type ToWorker } from './messages';
import { rowOf } from './row';
import type { AgentSnapshot, RpcError, TaskDto, TaskRuntimeDto } from './rpc';

const PING_EVERY = 25_000;
const PING_TIMEOUT = 10_000;
/** At most four batches a second. */
const BATCH_EVERY = 250;

interface Waiting {
  /** Of the page, or nothing for a call of our own. */
  id: number | null;
  done: (result: unknown) => void;
  failed: (error: RpcError) => void;
  timer: ReturnType<typeof setTimeout>;
}

interface Frame {
  id?: number | null;
  result?: unknown;
  error?: RpcError;
  method?: string;
  params?: { epoch: string; sequence: number; event: { service: string; event: { type: string; data?: unknown } } };
}

let machine: Machine = initial;
let socket: WebSocket | null = null;
let settings: Extract<ToWorker, { kind: 'start' }> | null = null;
let server: Server | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let nextAt = 0;
let nextId = 1;
let isVisible = true;
let flushing: ReturnType<typeof setTimeout> | undefined;
let pinging: ReturnType<typeof setInterval> | undefined;
let buffered: { sequence: number; epoch: string; type: string; data: unknown }[] = [];
let snapshot: { epoch: string; sequence: number; body: { snapshot: Partial<AgentSnapshot> } } | null = null;
const growing: Pick<Slices, 'pendingSelections' | 'rssItemRevisions'> = { pendingSelections: [], rssItemRevisions: {} };
const merge = new Merge(growing);
const waiting = new Map<number, Waiting>();

function say(message: FromWorker, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

function lost(message: string): RpcError {
  return { code: -32000, message, data: { code: 'unavailable', retryable: true } } as RpcError;
}

function feed(input: Input): void {
  const [next, effects] = step(machine, input);
  const isChanged = next.phase !== machine.phase || next.delay !== machine.delay || next.loginReason !== machine.loginReason;
  machine = next;
  for (const effect of effects) {
    switch (effect.do) {
      case 'open':
        open();
        break;
      case 'close':
        close();
        break;
      case 'hello':
        hello();
        break;
      case 'snapshot':
        fetchSnapshot();
        break;
      case 'probe':
        void probe();
        break;
      case 'wait': {
        const ms = effect.ms * (0.8 + Math.random() * 0.4);
        nextAt = Date.now() + ms;
        clearTimeout(timer);
        timer = setTimeout(() => feed({ kind: 'timer' }), ms);
        break;
      }
      case 'fail':
        for (const one of [...waiting.values()]) {
          clearTimeout(one.timer);
          one.failed(lost('connection lost'));
        }
        waiting.clear();
        clearInterval(pinging);
        break;
      case 'replace':
        replace();
        break;
      case 'buffer':
      case 'apply':
      case 'skip':
        break;
    }
  }
  if (isChanged) say({ kind: 'machine', machine, nextAt, server });
}

function base64url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

function open(): void {
  clearTimeout(timer);
  close();
  if (!settings) return;
  const url = new URL('rpc', settings.base);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const one = new WebSocket(url, ['svc.rpc.v1', `svc.token.${base64url(settings.key)}`]);
  socket = one;
  one.onopen = () => socket === one && feed({ kind: 'opened' });
  one.onmessage = (event: MessageEvent<string>) => {
    if (socket === one) take(JSON.parse(event.data) as Frame);
  };
  one.onclose = (event) => {
    if (socket !== one) return;
    socket = null;
    feed({ kind: 'closed', code: event.code, reason: event.reason });
  };
}

function close(): void {
  const one = socket;
  socket = null;
  one?.close();
}

function send(method: string, params: unknown, timeout: number, one: Pick<Waiting, 'id' | 'done' | 'failed'>): void {
  if (socket?.readyState !== WebSocket.OPEN) {
    one.failed(lost('not connected'));
    return;
  }
  const id = nextId++;
  const late = (): void => {
    waiting.delete(id);
    one.failed({ code: -32000, message: 'no answer in time', data: { code: 'timeout', retryable: true } } as RpcError);
  };
  waiting.set(id, { ...one, timer: setTimeout(late, timeout) });
  socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }));
}

function hello(): void {
  const params = {
    clientName: settings!.name,
    clientVersion: settings!.version,
    minProtocolVersion: 1,
    maxProtocolVersion: 1,
    requestedRole: 'agent',
    capabilities: ['client.sequences', 'client.selections', 'client.sparseTasks'],
  };
  send('system.hello', params, 30_000, {
    id: null,
    done: (result) => {
      const said = result as { serviceName: string; serviceVersion: string; instanceId: string; capabilities: string[] };
      server = { name: said.serviceName, version: said.serviceVersion, instanceId: said.instanceId, capabilities: said.capabilities };
      feed({ kind: 'helloAnswered' });
    },
    failed: (error) => feed({ kind: 'helloRefused', code: error.data?.code ?? 'internal' }),
  });
}

function fetchSnapshot(): void {
  buffered = [];
  send('system.snapshot', undefined, 120_000, {
    id: null,
    done: (result) => {
      snapshot = result as typeof snapshot;
      feed({ kind: 'snapshotAnswered', epoch: snapshot!.epoch, sequence: snapshot!.sequence });
    },
    failed: () => feed({ kind: 'snapshotRefused' }),
  });
}

function replace(): void {
  const { epoch, sequence, body } = snapshot!;
  snapshot = null;
  const all = body.snapshot;
  const daemon: Partial<AgentSnapshot['daemon']> = all.daemon ?? {};
  const columns = new Columns(Math.max(1024, daemon.tasks?.length ?? 0));
  (daemon.tasks ?? []).forEach((task, slot) => columns.put(slot, rowOf(task as TaskDto)));
  const slices: Slices = { ...noSlices };
  for (const key of Object.keys(noSlices) as (keyof Slices)[]) {
    const value = (all as Record<string, unknown>)[key] ?? (daemon as Record<string, unknown>)[key];
    if (value !== undefined && value !== null) (slices as unknown as Record<string, unknown>)[key] = value;
  }
  growing.pendingSelections = slices.pendingSelections;
  growing.rssItemRevisions = slices.rssItemRevisions;
  const samples = Object.values(daemon.taskRuntime ?? {}).map((runtime) => sampleOf(runtime as TaskRuntimeDto));
  merge.clear();
  const { packed, transfer } = columns.pack();
  say({ kind: 'snapshot', packed, slices, samples, at: Date.now() }, transfer);
  const late = buffered;
  buffered = [];
  for (const event of late) {
    if (event.epoch === epoch && event.sequence <= sequence) continue;
    take({ method: 'service.event', params: { epoch: event.epoch, sequence: event.sequence, event: { service: '', event } } });
  }
  send('daemon.selection.subscribe', {}, 30_000, { id: null, done: () => {}, failed: () => {} });
  clearInterval(pinging);
  pinging = setInterval(ping, PING_EVERY);
}

function ping(): void {
  if (waiting.size > 0) return;
  const one = socket;
  send('system.ping', undefined, PING_TIMEOUT, {
    id: null,
    done: () => {},
    failed: () => {
      if (socket !== one || !one) return;
      close();
      feed({ kind: 'closed', code: 1006, reason: '' });
    },
  });
}

function take(frame: Frame): void {
  if (frame.method === 'service.event' && frame.params) {
    const { epoch, sequence } = frame.params;
    let { type, data } = frame.params.event.event;
    const before = machine;
    if (before.phase === 'snapshot') buffered.push({ epoch, sequence, type, data });
    feed({ kind: 'event', epoch, sequence });
    if (before.phase !== 'live' || machine.phase !== 'live' || machine.sequence !== sequence || before.sequence === sequence) return;
    if (type === 'daemon') ({ type, data } = data as { type: string; data?: unknown });
    if (merge.add(type, data ?? null)) schedule();
    else feed({ kind: 'event', epoch: '', sequence: 0 });
    return;
  }
  if (frame.id === undefined || frame.id === null) return;
  const one = waiting.get(frame.id);
  if (!one) return;
  waiting.delete(frame.id);
  clearTimeout(one.timer);
  // The reply follows the events of its call; so must the page see them.
  if (one.id !== null) flush();
  if (frame.error) one.failed(frame.error);
  else one.done(frame.result);
}

function schedule(): void {
  if (isVisible) flushing ??= setTimeout(flush, BATCH_EVERY);
}

function flush(): void {
  clearTimeout(flushing);
  flushing = undefined;
  if (!merge.isEmpty) say({ kind: 'batch', batch: merge.take() });
}

/** A browser hides the status of a refused upgrade, so it is asked for beside. */
async function probe(): Promise<void> {
  const answer = await probed();
  feed({ kind: 'probed', answer });
}

async function probed(): Promise<Extract<Input, { kind: 'probed' }>['answer']> {
  if (!settings) return 'unreachable';
  const { base, key } = settings;
  try {
    const headers = { authorization: `Bearer ${key}` };
    const asked = await fetch(new URL('api/web/session', base), { cache: 'no-store', headers });
    if (asked.status === 401) return 'unauthorized';
    if (asked.status === 429) return 'throttled';
    if (asked.status === 403) {
      const status = await fetch(new URL('api/v1/setup/status', base), { cache: 'no-store' });
      if (status.ok && ((await status.json()) as { setupRequired: boolean }).setupRequired) return 'setup';
    }
    return 'ok';
  } catch {
    return 'unreachable';
  }
}

addEventListener('message', (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  switch (message.kind) {
    case 'start':
      settings = message;
      feed({ kind: 'start' });
      break;
    case 'call':
      send(message.method, message.params, message.timeout, {
        id: message.id,
        done: (result) => say({ kind: 'reply', id: message.id, result }),
        failed: (error) => say({ kind: 'failed', id: message.id, error }),
      });
      break;
    case 'visible':
      isVisible = message.visible;
      if (isVisible) {
        flush();
        feed({ kind: 'wake' });
      }
      break;
    case 'wake':
      feed({ kind: 'wake' });
      break;
    case 'watch':
      merge.watched = message.id;
      break;
    case 'signOut':
      settings = null;
      feed({ kind: 'signOut' });
      break;
  }
});
