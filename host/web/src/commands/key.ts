// The access key: in memory and in this tab's session storage; sealed in IndexedDB if the user keeps it.
const NAME = 'svc.key';
let memory: string | null = null;

interface Sealed {
  key: CryptoKey;
  iv: Uint8Array<ArrayBuffer>;
  text: ArrayBuffer;
}

/** Whether this page may seal a key: browsers offer it on https and localhost only. */
export const canKeep: boolean = globalThis.isSecureContext && 'indexedDB' in globalThis && !!globalThis.crypto?.subtle;

function database(): Promise<IDBDatabase> {
  return new Promise((done, failed) => {
    const request = indexedDB.open('svc', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('sealed');
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error ?? new Error('no database'));
  });
}

async function transaction<T>(mode: IDBTransactionMode, run: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const open = await database();
  try {
    return await new Promise<T>((done, failed) => {
      const request = run(open.transaction('sealed', mode).objectStore('sealed'));
      request.onsuccess = () => done(request.result);
      request.onerror = () => failed(request.error ?? new Error('no value'));
    });
  } finally {
    open.close();
  }
}

export async function readKey(): Promise<string | null> {
  memory ??= sessionStorage.getItem(NAME);
  if (memory !== null || !canKeep) return memory;
  try {
    const sealed = await transaction<Sealed | undefined>('readonly', (store) => store.get(NAME) as IDBRequest<Sealed | undefined>);
    if (!sealed) return null;
    const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: sealed.iv }, sealed.key, sealed.text);
    memory = new TextDecoder().decode(plain);
    sessionStorage.setItem(NAME, memory);
  } catch {
    memory = null;
  }
  return memory;
}

export async function rememberKey(text: string, keep: boolean): Promise<void> {
  memory = text;
  sessionStorage.setItem(NAME, text);
  if (!canKeep) return;
  if (!keep) {
    await transaction('readwrite', (store) => store.delete(NAME));
    return;
  }
  const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const sealed: Sealed = { key, iv, text: await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, new TextEncoder().encode(text)) };
  await transaction('readwrite', (store) => store.put(sealed, NAME));
}

export async function forgetKey(): Promise<void> {
  memory = null;
  sessionStorage.removeItem(NAME);
  if (canKeep) await transaction('readwrite', (store) => store.delete(NAME)).catch(() => {});
}
