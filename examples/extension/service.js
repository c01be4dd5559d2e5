// The service: what is stored about it, and calls to it.

import { DEFAULTS, cookieHeader, hostOf, isOf } from './rules.js';

/** Longer than a service on the same machine takes; meanwhile the browser holds the download. */
const TAKEOVER_MS = 4000;

export const settings = async () => ({ ...DEFAULTS, ...(await chrome.storage.local.get(Object.keys(DEFAULTS))) });
export const store = (values) => chrome.storage.local.set(values);

async function call(path, body, extra = {}) {
  const { service, key } = await settings();
  const answer = await fetch(service.replace(/\/$/, '') + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Svc-Client': 'extension', ...(key && { 'X-Svc-Token': key }), ...extra },
    body: JSON.stringify(body),
    credentials: 'omit',
    signal: AbortSignal.timeout(TAKEOVER_MS),
  });
  const text = await answer.text();
  let read = {};
  try {
    read = JSON.parse(text);
  } catch {
    // An answer of something else than the service.
  }
  if (!answer.ok) throw new Error(read.message ?? read.error ?? read.error?.message ?? `the service answers ${answer.status}`);
  return read;
}

/** The cookies of a URL, if the user allowed them for its site. */
async function cookiesOf(url) {
  const { cookieSites } = await settings();
  const host = hostOf(url);
  if (!cookieSites.some((site) => isOf(host, site)) || !chrome.cookies) return '';
  return cookieHeader(await chrome.cookies.getAll({ url }));
}

/** Hands a download over. Fails if the service does not take it. */
export async function handOver({ url, filename = '', referrer = '', bytes = -1, mime = '' }) {
  await call('/download', {
    url,
    filename,
    referrer,
    cookies: await cookiesOf(url),
    fileSize: bytes,
    mimeType: mime,
    headers: { 'User-Agent': navigator.userAgent },
  });
}

/** Hands several links over; one question to the user. */
export async function handOverAll(urls, referrer) {
  const items = await Promise.all(urls.map(async (url) => ({ url, referrer, cookies: await cookiesOf(url) })));
  await call('/download/batch', { items });
}

/** Downloads that this extension handed over, or all of them if it has the key. */
export async function progress() {
  const { key } = await settings();
  const token = key ? [`token:${key}`] : [];
  const keys = ['gid', 'status', 'totalLength', 'completedLength', 'downloadSpeed', 'files', 'errorMessage'];
  const { result } = await call('/jsonrpc', {
    jsonrpc: '2.0',
    id: 'popup',
    method: 'system.multicall',
    params: [[
      { methodName: 'aria2.tellActive', params: [...token, keys] },
      { methodName: 'aria2.tellWaiting', params: [...token, 0, 20, keys] },
      { methodName: 'aria2.tellStopped', params: [...token, -1, 10, keys] },
    ]],
  });
  return result.flatMap((list) => (Array.isArray(list) ? list[0] : []));
}

/** Pauses, resumes or removes a download. */
export async function act(method, gid) {
  const { key } = await settings();
  const { error } = await call('/jsonrpc', {
    jsonrpc: '2.0',
    id: 'popup',
    method: `aria2.${method}`,
    params: [...(key ? [`token:${key}`] : []), gid],
  });
  if (error) throw new Error(error.message);
}

/** Sets the first key of a new server with the code that it printed. */
export const setUp = (token, code) => call('/api/v1/setup', { token, code });

/** Whether the service answers and takes the key. */
export async function check() {
  const { key } = await settings();
  const params = key ? [`token:${key}`] : [];
  const { error } = await call('/jsonrpc', { jsonrpc: '2.0', id: 'check', method: 'aria2.tellActive', params });
  if (error) throw new Error(key ? 'the service does not accept the key' : `the service wants a key (${error.message})`);
}
