// What tests of the extension share: a site with files and links, and a desktop.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { desktop, listen } from './desktop.mjs';

export const MIB = 1024 * 1024;

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
  const origin = await listen(site);
  const [profile, browsed] = ['profile', 'browsed'].map((name) => path.join(directory, name));
  for (const made of [profile, browsed]) fs.mkdirSync(made, { recursive: true });
  const service = await desktop(executable, directory);
  return {
    ...service, asked, site, origin, profile, browsed,
    tasks: () => JSON.parse(service.svc('list', '--json')),
    inBrowser: (name) => fs.existsSync(path.join(browsed, name)),
    inService: (name) => fs.existsSync(path.join(service.saved, name)) && fs.statSync(path.join(service.saved, name)).size === 2 * MIB,
  };
}
