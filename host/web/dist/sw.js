// Takes what other apps share, and keeps files whose names have the hash of their content. Never the page itself, so an
// upgrade of the service needs no forced reload.
const CACHE = 'svc-assets';
const KEPT = 200;
const shared = [];

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

async function share(request) {
  const form = await request.formData();
  const text = ['url', 'text', 'title'].map((name) => form.get(name)).filter((value) => typeof value === 'string' && value !== '');
  const files = form.getAll('files').filter((value) => value instanceof File);
  // The link leaves neither in an address nor in a log: the page asks for it once it is there.
  shared.push({ text: text.find((one) => /\w+:/.test(one)) ?? '', files });
  if (shared.length > 8) shared.shift();
  return Response.redirect('./#/add', 303);
}

async function asset(request) {
  const cache = await caches.open(CACHE);
  const known = await cache.match(request);
  if (known) return known;
  const answer = await fetch(request);
  if (answer.ok) {
    await cache.put(request, answer.clone());
    const keys = await cache.keys();
    for (const old of keys.slice(0, Math.max(0, keys.length - KEPT))) await cache.delete(old);
  }
  return answer;
}

self.addEventListener('fetch', (event) => {
  const url = new URL(event.request.url);
  const scope = new URL(self.registration.scope);
  if (url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  const path = url.pathname.slice(scope.pathname.length);
  if (event.request.method === 'POST' && path === 'share') event.respondWith(share(event.request));
  else if (event.request.method === 'GET' && path.startsWith('assets/')) event.respondWith(asset(event.request));
});

self.addEventListener('message', (event) => {
  if (event.data === 'shared') event.source?.postMessage({ shared: shared.splice(0) });
});
