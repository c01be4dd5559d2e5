// The only two scripts that this page starts by address: its worker and its service worker.
import workerUrl from './worker?worker&url';

interface Policy {
  createScriptURL(url: string): string;
}

interface Factory {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
}

const allowed = new Set([workerUrl, './sw.js']);

function check(url: string): string {
  if (!allowed.has(url)) throw new TypeError('not a script of this page');
  return url;
}

const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
const policy: Policy = factory?.createPolicy('svc-url', { createScriptURL: check }) ?? { createScriptURL: check };

export function startWorker(): Worker {
  return new Worker(policy.createScriptURL(workerUrl), { type: 'module' });
}

export function serviceWorkerUrl(): string {
  return policy.createScriptURL('./sw.js');
}
