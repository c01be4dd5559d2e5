// The page's side of the connection: calls and what the worker reports.
import type { FromWorker, ToWorker } from './messages';
import type { ErrorCode, Methods, Reason, RpcError } from './rpc';
import { startWorker } from './trusted';

/** Calls that may take long: they go out to the network or through large directories. */
const SLOW = 120_000;
const USUAL = 30_000;
const slow = /^daemon\.(plugin\.(market|install|auth)|group\.resolvePreview|rss\.validate|config\.proxyTest|bt\.|task\.rescan|vault\.)|^agent\.link\.pair/;

/** A call that was refused, with the service's own words. */
export class CallError extends Error {
  readonly code: ErrorCode | 'protocol';
  readonly reason: Reason | null;
  readonly field: string | null;
  readonly revision: number | null;
  readonly isRetryable: boolean;

  constructor(error: RpcError) {
    super(error.message);
    this.code = error.data?.code ?? 'protocol';
    this.reason = error.data?.reason ?? null;
    this.field = error.data?.field ?? null;
    this.revision = error.data?.revision ?? null;
    this.isRetryable = error.data?.retryable ?? false;
  }
}

export type MethodName = keyof Methods;
export type Params<M extends MethodName> = Methods[M]['params'];
export type Result<M extends MethodName> = Methods[M]['result'];

interface Pending {
  done: (result: unknown) => void;
  failed: (error: CallError) => void;
}

export class Client {
  #worker: Worker;
  #pending = new Map<number, Pending>();
  #next = 1;
  #base = new URL('.', document.baseURI).href;

  constructor(listen: (message: Exclude<FromWorker, { kind: 'reply' } | { kind: 'failed' }>) => void) {
    this.#worker = startWorker();
    this.#worker.onmessage = (event: MessageEvent<FromWorker>) => {
      const message = event.data;
      if (message.kind === 'reply') this.#settle(message.id)?.done(message.result);
      else if (message.kind === 'failed') this.#settle(message.id)?.failed(new CallError(message.error));
      else listen(message);
    };
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #say(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  start(key: string): void {
    this.#say({ kind: 'start', base: this.#base, key, version: __VERSION__, name: 'svc-web' });
  }

  signOut(): void {
    this.#say({ kind: 'signOut' });
  }

  wake(): void {
    this.#say({ kind: 'wake' });
  }

  watch(id: string | null): void {
    this.#say({ kind: 'watch', id });
  }

  show(visible: boolean): void {
    this.#say({ kind: 'visible', visible });
  }

  call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    const id = this.#next++;
    return new Promise((done, failed) => {
      this.#pending.set(id, { done: done as (result: unknown) => void, failed });
      const timeout = slow.test(method) ? SLOW : USUAL;
      this.#say({ kind: 'call', id, method, params: plain(params), timeout });
    });
  }

  /** An address below the page's own. */
  url(path: string): URL {
    return new URL(path, this.#base);
  }
}

/** A reactive proxy cannot be posted; JSON is what goes over the wire anyway. */
function plain(value: unknown): unknown {
  return value === undefined || value === null ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
