// Downloads in a real browser with the extension of examples/extension, while a service is asked, silent, away.
//
//     extension.mjs EXTENSION EXECUTABLE DATA_DIR
//
// The executable is run as a desktop with its own data directory and no access key, as it is installed but for its port.

import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';

const { chromium } = createRequire(`${process.env.SVC_CLIENTS}/`)('playwright-core');
const [extension, executable, directory] = process.argv.slice(2);
const MIB = 1024 * 1024;

const until = async (what, check, wait = 30_000) => {
  const end = Date.now() + wait;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((next) => setTimeout(next, 100));
  }
};

// A site with files of different sizes; a file behind a cookie; a page with links.
const asked = [];
const site = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://site');
  asked.push({ path: pathname, agent: request.headers['user-agent'] ?? '', cookie: request.headers.cookie ?? '', referer: request.headers.referer ?? '' });
  const file = /^\/(?:large|small|private|many)[a-z0-9-]*\.(bin|iso)$/.exec(pathname);
  if (file) {
    const bytes = Buffer.alloc(pathname.startsWith('/small') ? 1000 : 2 * MIB, 'x');
    response.setHeader('Content-Type', 'application/octet-stream');
    response.setHeader('Content-Disposition', 'attachment');
    response.setHeader('Content-Length', bytes.length);
    response.end(request.method === 'HEAD' ? undefined : bytes);
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
for (const made of [path.join(data, 'agent'), saved, profile, browsed, path.join(profile, 'Default')]) fs.mkdirSync(made, { recursive: true });
fs.writeFileSync(path.join(data, 'agent/settings.json'), JSON.stringify({
  version: 1, key: null, takeover: true, jsonrpc: true, api: false, mcp: false, cors: false, lan: false, port, preferences: { revision: 0, values: {} },
}));
fs.writeFileSync(path.join(profile, 'Default/Preferences'), JSON.stringify({ download: { default_directory: browsed, prompt_for_download: false } }));

const environment = { PATH: process.env.PATH, HOME: directory, SVC_DATA_DIR: data, SVC_SAVE_DIR: saved };
const svc = (...arguments_) => execFileSync(executable, arguments_, { env: environment, encoding: 'utf8' });
const captures = () => JSON.parse(svc('capture', 'list', '--json'));
const tasks = () => JSON.parse(svc('list', '--json'));

let agent;
const start = async () => {
  agent = spawn(executable, ['agent'], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((started) => agent.stdout.on('data', (text) => text.includes('Next:') && started()));
};
const stop = async () => {
  const ended = new Promise((over) => agent.on('exit', over));
  agent.kill('SIGTERM');
  await ended;
};

const display = spawn('/usr/bin/Xvfb', ['-displayfd', '1', '-screen', '0', '1000x800x24', '-nolisten', 'tcp'], { stdio: ['ignore', 'pipe', 'ignore'] });
const number = await new Promise((found) => display.stdout.once('data', (text) => found(String(text).trim())));
const browserProcess = spawn('/usr/bin/chromium', [
  '--no-sandbox', '--no-first-run', '--remote-debugging-port=0', `--user-data-dir=${profile}`, '--disable-gpu',
  `--load-extension=${extension}`, `--disable-extensions-except=${extension}`, '--disable-features=DisableLoadExtensionCommandLineSwitch', 'about:blank',
], { env: { ...process.env, DISPLAY: `:${number}`, HOME: directory }, stdio: 'ignore' });

let browser;
try {
  await start();
  const endpoint = path.join(profile, 'DevToolsActivePort');
  const debugging = await until('the browser starts', () => fs.existsSync(endpoint) && fs.readFileSync(endpoint, 'utf8').split('\n')[0]);
  browser = await chromium.connectOverCDP(`http://127.0.0.1:${debugging}`);
  const context = browser.contexts()[0];
  // Playwright would keep downloads to itself, and from extensions.
  await (await browser.newBrowserCDPSession()).send('Browser.setDownloadBehavior', { behavior: 'default' });
  const worker = await until('the extension starts', () => context.serviceWorkers().find((each) => each.url().endsWith('/background.js')));
  const store = (values) => worker.evaluate((values) => chrome.storage.local.set(values), values);
  await store({ service: `http://127.0.0.1:${port}` });
  const page = await context.newPage();
  await page.goto(origin);
  const inBrowser = (name) => fs.existsSync(path.join(browsed, name));
  const inService = (name) => fs.existsSync(path.join(saved, name)) && fs.statSync(path.join(saved, name)).size === 2 * MIB;
  const click = (id, options) => page.click(`#${id}`, { noWaitAfter: true, ...options });

  // Accepted.
  await click('large-one');
  const [waiting] = await until('the download waits in the service', () => captures().length && captures());
  assert.equal(waiting.url, `${origin}/large-one.bin`);
  assert.equal(waiting.referrer, `${origin}/`);
  assert.equal(waiting.fileSize, 2 * MIB);
  assert.equal(waiting.hasCookies, false, 'nobody allowed cookies');
  svc('capture', 'accept', '--all');
  await until('the service has the file', () => inService('large-one.bin'));
  assert(!inBrowser('large-one.bin'));
  console.log('accepted');

  // Rejected: neither has it.
  await click('large-two');
  await until('the download waits', () => captures().length);
  svc('capture', 'reject', '--all');
  assert.deepEqual([tasks().length, inBrowser('large-two.bin')], [1, false]);
  console.log('rejected');

  // Small files, files of sites with a rule, and those of a click with Alt stay in the browser.
  await click('small');
  await until('the browser has the small file', () => inBrowser('small.bin'));
  await store({ sites: '127.0.0.1' });
  await click('large-three');
  await until('the browser has the file of the site', () => inBrowser('large-three.bin'));
  await store({ sites: '' });
  await page.evaluate((url) => {
    const link = Object.assign(document.createElement('a'), { id: 'alt', textContent: 'alt', href: '#' });
    // Chromium itself saves what is clicked with Alt; here the page downloads, as pages do.
    link.onclick = (event) => (event.preventDefault(), (location.href = url));
    document.body.prepend(link);
  }, `${origin}/large-four.bin`);
  await click('alt', { modifiers: ['Alt'] });
  await until('the browser has what was clicked with Alt', () => inBrowser('large-four.bin'));
  assert.deepEqual(captures(), []);
  console.log('left to the browser: small, site, Alt');
  await page.waitForTimeout(5200); // the bypass is over

  // Silent. Nothing was confirmed, so a page's link does not reach this machine: the task fails and says so.
  svc('config', 'server', 'set', 'silent_download_enabled=true');
  await click('large-five');
  await until('a task is made without a question', () => tasks().some(({ url }) => url.endsWith('/large-five.bin')));
  assert.deepEqual(captures(), []);
  assert(!inBrowser('large-five.bin'));
  svc('config', 'server', 'set', 'silent_download_enabled=false');
  console.log('silent');

  // Links of a page, filtered, as one question.
  const [links] = await Promise.all([
    context.waitForEvent('page'),
    worker.evaluate(async (origin) => {
      const [tab] = await chrome.tabs.query({ url: `${origin}/*` });
      return svc.showLinks(tab);
    }, origin),
  ]);
  await links.waitForSelector('li');
  assert.equal(await links.locator('li').count(), 10, 'without the repeated link and the mail address');
  await links.fill('#filter', 'image');
  assert.equal(await links.locator('li').count(), 2);
  await links.fill('#filter', '/\\.iso$/');
  await links.check('#all');
  await links.click('#send');
  const batch = await until('both wait as one question', () => captures().length === 1 && captures());
  assert.equal(batch[0].url, `${origin}/many1.iso\n${origin}/many2.iso`);
  svc('capture', 'accept', '--all');
  await until('both are there', () => inService('many1.iso') && inService('many2.iso'));
  await links.close();
  console.log('links of a page');

  // Progress in the popup.
  const id = new URL(worker.url()).host;
  const popup = await context.newPage();
  await popup.goto(`chrome-extension://${id}/popup.html`);
  await popup.waitForFunction(() => /many1\.iso/.test(document.getElementById('list').textContent));
  assert.match(await popup.textContent('#list'), /complete/);
  // Settings are checked against the service.
  await popup.goto(`chrome-extension://${id}/options.html`);
  await popup.fill('[name=key]', 'wrong-key-1');
  await popup.click('button');
  const said = await popup.waitForFunction(() => document.getElementById('problem').textContent);
  console.log(`settings: ${await said.jsonValue()}`);
  await popup.fill('[name=key]', '');
  await popup.click('button');
  await until('the service answers', async () => (await popup.textContent('#problem')) === 'Saved; the service answers.');
  await popup.close();

  // Away: the browser does it.
  await stop();
  await click('large-six');
  await until('the browser has the file while the service is away', () => inBrowser('large-six.bin'));
  await start();
  console.log('away');
  const agents = new Set(asked.filter(({ path }) => path === '/large-one.bin').map(({ agent }) => agent));
  assert(agents.size >= 1);
  await stop();
} catch (error) {
  const worker = browser?.contexts()[0].serviceWorkers()[0];
  console.error('the extension says:', await worker?.evaluate(() => chrome.action.getTitle({})));
  console.error('downloads:', await worker?.evaluate(() => chrome.downloads.search({})));
  throw error;
} finally {
  await browser?.close().catch(() => {});
  if (agent?.exitCode === null) await stop();
  for (const child of [browserProcess, display]) child.kill('SIGKILL');
  site.close();
}
process.exit(0);
