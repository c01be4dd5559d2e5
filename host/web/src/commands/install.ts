// The service worker: what other apps share arrives through it, and hashed files come from its cache.
import { serviceWorkerUrl } from '../rpc/trusted';
import { overlays } from './overlay.svelte';
import { pending } from './pending.svelte';

interface Shared {
  text: string;
  files: File[];
}

/** Browsers offer it on https and localhost only. */
export const canInstall: boolean = globalThis.isSecureContext && 'serviceWorker' in navigator;

export async function install(): Promise<void> {
  if (!canInstall || import.meta.env.DEV) return;
  navigator.serviceWorker.addEventListener('message', (event: MessageEvent<{ shared?: Shared[] }>) => {
    for (const one of event.data.shared ?? []) {
      pending.files = [...pending.files, ...one.files];
      overlays.open({ kind: 'add', text: one.text });
    }
  });
  try {
    await navigator.serviceWorker.register(serviceWorkerUrl());
    const registration = await navigator.serviceWorker.ready;
    registration.active?.postMessage('shared');
  } catch {
    // Without it the page works the same; it cannot be shared to.
  }
}
