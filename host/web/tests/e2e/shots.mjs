// Pictures of every screen, to look at and for the README: wide and on a phone, light and dark, English and Chinese.
//   SVC_BIN=… node tests/e2e/shots.mjs        writes host/web/screens/*.webp
//   SVC_BIN=… node tests/e2e/shots.mjs png    writes tests/e2e/out/shots/*.png
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startOrigin } from './origin.mjs';
import { launch, open, pageOf } from './page.mjs';
import { KEY, Service } from './service.mjs';

const format = process.argv[2] === 'png' ? 'png' : 'webp';
const out = fileURLToPath(new URL(format === 'png' ? 'out/shots/' : '../../screens/', import.meta.url));
const QUALITY = 70;
mkdirSync(out, { recursive: true });
const devices = [['wide', 1280, 800, false], ['phone', 390, 844, true]];
const languages = [['en', 'en-GB'], ['zh', 'zh-CN']];
const service = await Service.start(process.env.SVC_BIN, { name: 'Attic' });
const second = await Service.start(process.env.SVC_BIN, { name: 'Desk' });
const fresh = await Service.start(process.env.SVC_BIN, { hasKey: false });
const origin = await startOrigin();
const browser = await launch();
const add = (path, more = {}) => service.api('POST', 'tasks', { url: `${origin.url}/${path}`, ...more });

async function furnish() {
  const plugin = `${service.root}/checksum-list.zip`;
  const run = (...words) => execFileSync(service.binary, words, { env: { ...process.env, SVC_URL: service.url, SVC_TOKEN: KEY } });
  run('plugin', 'pack', fileURLToPath(new URL('../../../../examples/plugin-js', import.meta.url)), '--output', plugin);
  run('plugin', 'install', plugin);
  const list = (await service.api('GET', 'plugins')).find((one) => one.identity === 'checksum-list-js@example');
  await service.api('PUT', `plugins/${list.identity}/enabled`, { enabled: true, consent: list.pending.digest });
  for (const name of ['archive-item@svc', 'hls@svc', 'unpack@svc']) run('market', 'install', name, '--yes');
  await add('file/ubuntu-26.04-desktop-amd64.iso?size=900000000&rate=80000');
  await add('file/dataset-09.tar.zst?size=2200000000&rate=300000');
  await add('gone/report-final.pdf');
  await add('login/private-archive.zip');
  await add('status/404/season-2-episode-7-with-a-very-long-name-that-does-not-fit-into-its-column.mkv');
  await add('file/lecture-07.mp4?size=1400000');
  await add('file/photo-1.jpg?size=140000');
  await add('file/archlinux-2026.11.01-x86_64.iso?size=1200000', { startPaused: true });
  await add('file/x?size=1200000', { startPaused: true, fileName: '中文文件名_测试资料合集（第二版）.rar' });
  await service.api('POST', 'rss', { url: `${origin.url}/feed.xml`, name: 'Shows', includePattern: 'show', allowPrivate: true });
  const { code } = await second.api('POST', 'link/code');
  const begun = await service.api('POST', 'link/pair/begin', { host: '127.0.0.1', port: second.port, code });
  const finished = service.api('POST', 'link/pair/finish', { token: begun.token, accept: true });
  const { requests } = await second.api('GET', 'link/pair/requests');
  await second.api('POST', 'link/pair/approve', { sessionId: requests[0].sessionId, accept: true });
  await finished;
}

async function round(language, locale, [device, width, height, isTouch], scheme) {
  const served = await pageOf(service);
  const { context, page } = await open(browser, { width, height, scheme, language: locale, isTouch });
  const cdp = await context.newCDPSession(page);
  const shot = async (name) => {
    const taken = format === 'png' ? { format } : { format, quality: QUALITY };
    const { data } = await cdp.send('Page.captureScreenshot', taken);
    writeFileSync(`${out}${name}-${device}-${scheme}-${language}.${format}`, Buffer.from(data, 'base64'));
  };
  const go = (to) => page.evaluate((hash) => (location.hash = hash), `#/${to}`);
  /** Everything that was on its way is there. */
  const settled = async () => {
    await page.waitForFunction(() => !document.querySelector('.skeleton'));
    await page.waitForTimeout(400);
  };
  await page.goto(`${fresh.url}/#setup=${fresh.setupCode}`);
  await page.locator('input[type=password]').first().waitFor();
  await settled();
  await shot('set-up');
  await page.goto(served.url);
  await page.locator('input[type=password]').waitFor();
  await shot('login');
  await page.locator('input[type=password]').fill(KEY);
  await page.keyboard.press('Enter');
  await page.locator('[data-id]').first().waitFor();
  await page.waitForTimeout(700);
  await shot('tasks');
  await go(`tasks?o=${await page.locator('[data-id]', { hasText: 'dataset' }).getAttribute('data-id')}`);
  await page.locator('aside dl').first().waitFor();
  // The plot is that of the time since.
  await page.waitForTimeout(12_000);
  await shot('details');
  await go(`add?url=${encodeURIComponent(`${origin.url}/release/1.0/SHA256SUMS\nmagnet:?xt=urn:btih:${'c'.repeat(40)}&dn=Some+Magnet`)}`);
  await page.getByRole('dialog').waitFor();
  await page.waitForTimeout(900);
  await shot('add');
  await page.keyboard.press('Escape');
  for (const name of ['queues', 'feeds', 'plugins', 'market', 'devices', 'settings', 'settings/speed']) {
    await go(name);
    await page.locator('main h1').first().waitFor();
    if (name === 'feeds') await page.locator('.sources a').first().click();
    await page.mouse.move(0, 0);
    await settled();
    await shot(name.replace('/', '-'));
  }
  await context.close();
  await served.stop();
}

try {
  await furnish();
  // The speed of some seconds is drawn.
  await new Promise((done) => setTimeout(done, 20_000));
  for (const [language, locale] of languages)
    for (const device of devices) for (const scheme of ['light', 'dark']) await round(language, locale, device, scheme);
} finally {
  await browser.close();
  await origin.stop();
  for (const one of [service, second, fresh]) await one.stop();
}
process.exit(0);
