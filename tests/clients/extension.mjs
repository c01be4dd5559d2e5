// Downloads in a real browser with the extension of examples/extension, while a service is asked, silent, away.
//
//     extension.mjs EXTENSION EXECUTABLE DATA_DIR
//
// The executable is run as a desktop with its own data directory and no access key, as it is installed but for its port.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { debugging, display, until } from './desktop.mjs';
import { MIB, scene } from './extension_scene.mjs';

const { chromium } = createRequire(`${process.env.SVC_CLIENTS}/`)('playwright-core');
const [extension, executable, directory] = process.argv.slice(2);
const { asked, site, origin, port, profile, browsed, svc, captures, tasks, inBrowser, inService, start, stop } = await scene(executable, directory);
fs.mkdirSync(path.join(profile, 'Default'), { recursive: true });
fs.writeFileSync(path.join(profile, 'Default/Preferences'), JSON.stringify({ download: { default_directory: browsed, prompt_for_download: false } }));

// As the store of Firefox checks it. One manifest is for both browsers, and each has what it does not know.
const lint = createRequire(`${process.env.SVC_CLIENTS}/`)('addons-linter').createInstance({
  config: { _: [extension], logLevel: 'fatal', output: 'none', stack: false, pretty: false, warningsAsErrors: false, metadata: false, boring: true, selfHosted: false, disableXpiAutoclose: true },
  runAsBinary: false,
});
const { errors, notices, warnings } = await lint.run();
assert.deepEqual([errors, notices], [[], []]);
const known = new Set([
  'BACKGROUND_SERVICE_WORKER_IGNORED', // Firefox takes the scripts beside it.
  'UNSUPPORTED_API', // downloads.onDeterminingFilename, used where it is there.
  'KEY_FIREFOX_UNSUPPORTED_BY_MIN_VERSION', // What is collected, which versions before 140 ignore.
  'KEY_FIREFOX_ANDROID_UNSUPPORTED_BY_MIN_VERSION',
]);
assert.deepEqual(warnings.filter(({ code }) => !known.has(code)), []);
console.log('checked as an extension of Firefox');

const screen = await display();
const browserProcess = spawn('/usr/bin/chromium', [
  '--no-sandbox', '--no-first-run', '--remote-debugging-port=0', `--user-data-dir=${profile}`, '--disable-gpu',
  `--load-extension=${extension}`, `--disable-extensions-except=${extension}`, '--disable-features=DisableLoadExtensionCommandLineSwitch', 'about:blank',
], { env: { ...process.env, DISPLAY: screen.name, HOME: directory }, stdio: 'ignore' });

let browser;
try {
  await start();
  browser = await chromium.connectOverCDP(await debugging(profile));
  const context = browser.contexts()[0];
  // Playwright would keep downloads to itself, and from extensions.
  await (await browser.newBrowserCDPSession()).send('Browser.setDownloadBehavior', { behavior: 'default' });
  const worker = await until('the extension starts', () => context.serviceWorkers().find((each) => each.url().endsWith('/background.js')));
  const store = (values) => worker.evaluate((values) => chrome.storage.local.set(values), values);
  await store({ service: `http://127.0.0.1:${port}` });
  const page = await context.newPage();
  await page.goto(origin);
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
  await stop();
  browserProcess.kill('SIGKILL');
  screen.stop();
  site.close();
}
process.exit(0);
