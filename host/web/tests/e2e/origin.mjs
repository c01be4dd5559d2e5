// A web server with files of any size at any rate, and with every kind of trouble.
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

/** A release: what `SHA256SUMS` lists. */
const RELEASE = { 'disk.iso': 400_000, 'notes.txt': 900, 'docs/manual.pdf': 30_000 };

function content(size) {
  return Buffer.alloc(size, BLOCK);
}

const BLOCK = Buffer.alloc(16_384, 'svc');

/**
 * Members have a session: `/sign-in` has a form for `anna` with `op3n-sesame`, `/qr/new` a code that `/qr/confirm` confirms, and
 * `/members/NAME` is for them alone, until `endSessions`.
 *
 * `/file/NAME?size=BYTES&rate=BYTES_PER_SECOND`, `/status/CODE/NAME`, `/login/NAME`, `/html/NAME`, `/loop/NAME`, a release below
 * `/release/`, and `/feed.xml` with the names in `episodes`.
 */
export async function startOrigin() {
  const sockets = new Set();
  const episodes = ['Show S01E01', 'Show S01E02', 'Other S01E01'];
  const sessions = new Set();
  /** Codes, and whether they are confirmed. */
  const codes = new Map();
  const newSession = () => {
    const id = randomUUID();
    sessions.add(id);
    return { 'set-cookie': `session=${id}; Path=/; HttpOnly` };
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://origin');
    const [, what, second] = url.pathname.split('/');
    const fail = (status) => {
      response.writeHead(status, { 'content-length': 0 });
      response.end();
    };
    if (what === 'status') return fail(Number(second));
    if (what === 'login') {
      const [user, password] = ['user', 'pass'];
      if (request.headers.authorization !== `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="files"', 'content-length': 0 });
        return response.end();
      }
    }
    if (what === 'html') {
      response.writeHead(200, { 'content-type': 'text/html' });
      return response.end('<html><title>Sign in</title></html>');
    }
    if (what === 'loop') {
      response.writeHead(302, { location: url.pathname });
      return response.end();
    }
    if (what === 'gone') return fail(410);
    const say = (type, text, headers = {}) => {
      response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text), ...headers });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    const form = '<form method="post"><input type="hidden" name="csrf" value="t0ken"><input name="name"><input type="password" name="password"></form>';
    if (what === 'sign-in' && request.method !== 'POST') return say('text/html', form);
    if (what === 'sign-in') {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      return request.on('end', () => {
        const sent = new URLSearchParams(Buffer.concat(parts).toString());
        if (sent.get('csrf') !== 't0ken' || sent.get('name') !== 'anna' || sent.get('password') !== 'op3n-sesame') return say('text/html', `<p class="error">Wrong name or password.</p>${form}`);
        say('text/html', '<h1>Hello</h1>', newSession());
      });
    }
    if (what === 'qr') {
      const code = second === 'new' ? randomUUID() : (url.searchParams.get('code') ?? '');
      if (second === 'new') codes.set(code, false);
      if (!codes.has(code)) return fail(404);
      if (second === 'confirm') codes.set(code, true);
      const confirmed = codes.get(code);
      return say('application/json', JSON.stringify({ code, confirmed }), second === 'state' && confirmed ? newSession() : {});
    }
    if (what === 'members' && !sessions.has(/(?:^|; )session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1])) return fail(403);
    const released = RELEASE[url.pathname.replace(/^\/release\/1\.0\//, '')];
    if (url.pathname === '/release/1.0/SHA256SUMS') {
      const lines = Object.entries(RELEASE).map(([name, size]) => `${createHash('sha256').update(content(size)).digest('hex')}  ${name}\n`);
      return say('text/plain', lines.join(''));
    }
    if (what === 'feed.xml') {
      const items = episodes.map((title) => `<item><title>${title}</title><guid>${title}</guid><enclosure url="http://${request.headers.host}/file/${encodeURIComponent(title)}.mkv?size=2000" type="video/x-matroska" length="2000"/></item>`);
      return say('application/rss+xml', `<rss version="2.0"><channel><title>Shows</title>${items.join('')}</channel></rss>`);
    }
    const size = released ?? Number(url.searchParams.get('size') ?? 1000);
    const rate = Number(url.searchParams.get('rate') ?? 0);
    let [from, to] = [0, size - 1];
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    if (range) {
      from = Number(range[1]);
      if (range[2] !== '') to = Math.min(to, Number(range[2]));
      if (from > to) return fail(416);
    }
    response.writeHead(range ? 206 : 200, {
      'content-type': 'application/octet-stream',
      'accept-ranges': 'bytes',
      etag: `"${size}"`,
      'content-length': to - from + 1,
      ...(range ? { 'content-range': `bytes ${from}-${to}/${size}` } : {}),
    });
    if (request.method === 'HEAD') return response.end();
    let left = to - from + 1;
    if (rate === 0) {
      const pump = () => {
        while (left > 0) {
          const part = BLOCK.subarray(0, Math.min(BLOCK.length, left));
          left -= part.length;
          if (!response.write(part)) return response.once('drain', pump);
        }
        response.end();
      };
      return pump();
    }
    const step = Math.max(1, Math.round(rate / 10));
    const timer = setInterval(() => {
      let now = Math.min(step, left);
      left -= now;
      while (now > 0) {
        const part = BLOCK.subarray(0, Math.min(BLOCK.length, now));
        now -= part.length;
        response.write(part);
      }
      if (left === 0) {
        clearInterval(timer);
        response.end();
      }
    }, 100);
    response.once('close', () => clearInterval(timer));
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('clientError', () => {});
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    episodes,
    endSessions: () => sessions.clear(),
    /** The code that waits for the app. */
    openCode: () => [...codes].find(([, isConfirmed]) => !isConfirmed)?.[0],
    stop: () =>
      new Promise((done) => {
        server.close(done);
        for (const socket of sockets) socket.destroy();
      }),
  };
}
