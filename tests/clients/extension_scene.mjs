// What tests of the extension share: a site with files and links, and a service as a desktop without an access key, as it is
// installed but for its port.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';

export const MIB = 1024 * 1024;

export const until = async (what, check, wait = 30_000) => {
  const end = Date.now() + wait;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((next) => setTimeout(next, 100));
  }
};

/** Starts the site; `held` is whether a browser gets only the half of a file until it asks again, so that it can be paused. */
export async function scene(executable, directory, { isHeld = false } = {}) {
  // A site with files of different sizes; a file behind a cookie; a page with links.
  const asked = [];
  const site = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://site');
    const agent = request.headers['user-agent'] ?? '';
    const isFirst = !asked.some((before) => before.path === pathname && before.agent === agent);
    asked.push({ path: pathname, agent, cookie: request.headers.cookie ?? '', referer: request.headers.referer ?? '' });
    const file = /^\/(?:large|small|private|many)[a-z0-9-]*\.(bin|iso)$/.exec(pathname);
    if (file) {
      const bytes = Buffer.alloc(pathname.startsWith('/small') ? 1000 : 2 * MIB, 'x');
      response.setHeader('Content-Type', 'application/octet-stream');
      response.setHeader('Content-Disposition', 'attachment');
      response.setHeader('Content-Length', bytes.length);
      if (isHeld && isFirst && bytes.length > MIB && agent.startsWith('Mozilla')) response.write(bytes.subarray(0, MIB));
      else response.end(request.method === 'HEAD' ? undefined : bytes);
    } else {
      response.setHeader('Set-Cookie', 'visitor=42; HttpOnly');
      response.setHeader('Content-Type', 'text/html');
      const names = ['large-one.bin', 'large-two.bin', 'large-three.bin', 'large-four.bin', 'large-five.bin', 'large-six.bin', 'small.bin', 'private.bin'];
      response.end(`<title>site</title>${names.map((name) => `<p><a id="${name.split('.')[0]}" href="/${name}">${name}</a>`).join('')}
        <p><a href="/many1.iso">first image</a> <a href="/many2.iso">second image</a> <a href="/many1.iso">again</a> <a href="mailto:a@b.test">mail</a>`);
    }
  });
  await new Promise((listening) => site.listen(0, '127.0.0.1', listening));
  const origin = `http://127.0.0.1:${site.address().port}`;

  const port = await new Promise((found) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => found(port));
    });
  });
  const [data, saved, profile, browsed] = ['data', 'saved', 'profile', 'browsed'].map((name) => path.join(directory, name));
  for (const made of [path.join(data, 'agent'), saved, profile, browsed]) fs.mkdirSync(made, { recursive: true });
  fs.writeFileSync(path.join(data, 'agent/settings.json'), JSON.stringify({
    version: 1, key: null, takeover: true, jsonrpc: true, api: false, mcp: false, cors: false, lan: false, port, preferences: { revision: 0, values: {} },
  }));

  const environment = { PATH: process.env.PATH, HOME: directory, SVC_DATA_DIR: data, SVC_SAVE_DIR: saved };
  const svc = (...arguments_) => execFileSync(executable, arguments_, { env: environment, encoding: 'utf8' });
  let agent;
  return {
    asked, site, origin, port, profile, browsed, svc,
    captures: () => JSON.parse(svc('capture', 'list', '--json')),
    tasks: () => JSON.parse(svc('list', '--json')),
    inBrowser: (name) => fs.existsSync(path.join(browsed, name)),
    inService: (name) => fs.existsSync(path.join(saved, name)) && fs.statSync(path.join(saved, name)).size === 2 * MIB,
    async start() {
      agent = spawn(executable, ['agent'], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
      await new Promise((started) => agent.stdout.on('data', (text) => text.includes('Next:') && started()));
    },
    async stop() {
      if (!agent || agent.exitCode !== null) return;
      const ended = new Promise((over) => agent.on('exit', over));
      agent.kill('SIGTERM');
      await ended;
    },
  };
}
