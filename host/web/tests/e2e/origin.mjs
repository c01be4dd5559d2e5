// A web server with files of any size at any rate, and with every kind of trouble.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

/** A release: what `SHA256SUMS` lists. */
const RELEASE = { 'disk.iso': 400_000, 'notes.txt': 900, 'docs/manual.pdf': 30_000 };

function content(size) {
  return Buffer.alloc(size, BLOCK);
}

const BLOCK = Buffer.alloc(16_384, 'svc');

/**
 * `/file/NAME?size=BYTES&rate=BYTES_PER_SECOND`, `/status/CODE/NAME`, `/login/NAME`, `/html/NAME`, `/loop/NAME`, a release below
 * `/release/`, and `/feed.xml` with the names in `episodes`.
 */
export async function startOrigin() {
  const sockets = new Set();
  const episodes = ['Show S01E01', 'Show S01E02', 'Other S01E01'];
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
    const say = (type, text) => {
      response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
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
    stop: () =>
      new Promise((done) => {
        server.close(done);
        for (const socket of sockets) socket.destroy();
      }),
  };
}
