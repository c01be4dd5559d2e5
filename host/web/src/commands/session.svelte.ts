// The one session of the page: connection, store, and the small parts of the state as reactive values.
import { Client, type MethodName, type Params, type Result } from '../rpc/client';
import { initial, type Machine } from '../rpc/machine';
import { noSlices, type FromWorker, type Server, type Slices } from '../rpc/messages';
import { Store, type Changes } from '../store/store';
import { forgetKey, readKey, rememberKey } from './key';

type Listener = (data: unknown) => void;
type Frame = (changes: Changes) => void;

class Session {
  readonly store = new Store();
  /** The state of the connection. */
  machine = $state.raw<Machine>(initial);
  /** When it is tried next, in Unix milliseconds. */
  nextAt = $state(0);
  /** When the connection was last live, in Unix milliseconds. */
  liveAt = $state(0);
  server = $state.raw<Server | null>(null);
  /** Everything but the tasks. Each part is replaced as a whole. */
  slices = $state.raw<Slices>(noSlices);
  /** A key was entered and the service has not taken it yet: the form stays until it is live. */
  isSigningIn = $state(false);
  /** Whether a snapshot was ever shown. */
  hasState = $state(false);
  #client = new Client((message) => this.#hear(message));
  #listeners = new Map<string, Set<Listener>>();
  #frames = new Set<Frame>();
  #isFramed = false;
  #channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('svc-session') : null;

  constructor() {
    this.#channel?.addEventListener('message', (event: MessageEvent<string>) => {
      if (event.data === 'signOut') this.#leave();
    });
    document.addEventListener('visibilitychange', () => this.#client.show(!document.hidden));
    addEventListener('online', () => this.#client.wake());
    addEventListener('pageshow', () => this.#client.wake());
  }

  get isLive(): boolean {
    return this.machine.phase === 'live';
  }

  /** Whether writes are taken: connected, and the engine answers. */
  get canWrite(): boolean {
    return this.isLive && this.slices.daemonConnected;
  }

  /** Connects with the key of this tab, or with none to learn whether the service is set up. */
  async start(): Promise<void> {
    const [, ticket, route = '/tasks'] = /^#open=([^/]+)(\/.*)?$/.exec(location.hash) ?? [];
    if (ticket) {
      history.replaceState(null, '', `#${route}`);
      const token = await this.#exchange(decodeURIComponent(ticket));
      if (token !== null) await rememberKey(token, false);
    }
    this.#client.start((await readKey()) ?? '');
  }

  /** The ticket of `svc open` for a session of this machine's browser. */
  async #exchange(ticket: string): Promise<string | null> {
    try {
      const answer = await fetch(this.#client.url('api/web/session'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ticket }),
      });
      return answer.ok ? ((await answer.json()) as { token: string }).token : null;
    } catch {
      return null;
    }
  }

  async signIn(key: string, keep: boolean): Promise<void> {
    this.isSigningIn = true;
    await rememberKey(key, keep);
    this.#client.start(key);
  }

  async signOut(): Promise<void> {
    this.#channel?.postMessage('signOut');
    await this.#leave();
  }

  async #leave(): Promise<void> {
    this.isSigningIn = false;
    await forgetKey();
    this.#client.signOut();
  }

  /** Connects at once instead of after the wait. */
  retry(): void {
    this.#client.wake();
  }

  /** Calls a method. The events of a write are applied before its promise settles. Throws `CallError`. */
  call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    return this.#client.call(method, params);
  }

  /** Listens to an event that is not part of the state, for example `rssItemsChanged`; returns how to stop. */
  on(type: string, listener: Listener): () => void {
    const all = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, all.add(listener));
    return () => all.delete(listener);
  }

  /** Called in an animation frame with what changed of the tasks; returns how to stop. */
  onFrame(frame: Frame): () => void {
    this.#frames.add(frame);
    return () => this.#frames.delete(frame);
  }

  /** Asks for the servers of a task that is looked at. */
  watch(id: string | null): void {
    this.store.servers = [];
    this.#client.watch(id);
  }

  /** An authorized request to a path of the service, for example `api/web/blobs/torrents`. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const key = (await readKey()) ?? '';
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${key}`);
    return fetch(this.#client.url(path), { ...init, headers, cache: 'no-store' });
  }

  /** An address below the page's own. */
  url(path: string): string {
    return this.#client.url(path).href;
  }

  #hear(message: Exclude<FromWorker, { kind: 'reply' } | { kind: 'failed' }>): void {
    switch (message.kind) {
      case 'machine':
        if (this.machine.phase === 'live' && message.machine.phase !== 'live') this.liveAt = Date.now();
        this.machine = message.machine;
        if (message.machine.phase === 'live') this.isSigningIn = false;
        this.nextAt = message.nextAt;
        this.server = message.server;
        break;
      case 'snapshot':
        this.store.snapshot(message.packed, message.slices, message.samples);
        this.slices = this.store.slices;
        this.hasState = true;
        this.#schedule();
        break;
      case 'batch': {
        const { batch } = message;
        this.store.apply(batch);
        if (Object.keys(batch.slices).length > 0) this.slices = this.store.slices;
        if (batch.rows.length + batch.deleted.length + batch.samples.length > 0) this.#schedule();
        for (const event of batch.events) {
          for (const listener of this.#listeners.get(event.type) ?? []) listener(event.data);
        }
        break;
      }
    }
  }

  #schedule(): void {
    if (this.#isFramed) return;
    this.#isFramed = true;
    requestAnimationFrame(() => {
      this.#isFramed = false;
      const changes = this.store.changed();
      for (const frame of this.#frames) frame(changes);
    });
  }
}

export const session = new Session();
