// Downloads in Firefox with the extension of examples/extension, while a service is asked, and away. Firefox is driven over
// WebDriver BiDi, which it speaks itself.
//
//     extension_firefox.mjs EXTENSION EXECUTABLE DATA_DIR

import { spawn } from 'node:child_process';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { until } from './desktop.mjs';
import { scene } from './extension_scene.mjs';

const [extension, executable, directory] = process.argv.slice(2);
const { asked, site, origin, port, profile, browsed, svc, captures, tasks, inBrowser, inService, start, stop } = await scene(executable, directory, { isHeld: true });

// The id by which the extension's own pages are reached is random otherwise.
const id = '0c8a5b4e-7a0f-4a2e-9a51-0d6f7a4b1c11';
const preferences = {
  'extensions.webextensions.uuids': JSON.stringify({ 'svc@example': id }),
  'browser.download.folderList': 2,
  'browser.download.dir': browsed,
  // Its list of downloads would be in the way of the next click.
  'browser.download.alwaysOpenPanel': false,
};
fs.writeFileSync(path.join(profile, 'user.js'), Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''));
const firefox = spawn('/usr/bin/firefox-esr', ['--headless', '--no-remote', '--remote-debugging-port=0', '--remote-allow-system-access', '--profile', profile, 'about:blank'], {
  env: { ...process.env, HOME: directory }, stdio: ['ignore', 'ignore', 'pipe'],
});
let said = '';
firefox.stderr.on('data', (text) => (said += text));
try {
  const address = await until('the browser starts', () => /WebDriver BiDi listening on (ws:\S+)/.exec(said)?.[1]);
  const socket = new WebSocket(`${address}/session`);
  await new Promise((opened) => (socket.onopen = opened));
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    waiting.get(message.id)?.(message);
  };
  let count = 0;
  const call = async (method, params = {}) => {
    const number = (count += 1);
    const answered = new Promise((answer) => waiting.set(number, answer));
    socket.send(JSON.stringify({ id: number, method, params }));
    const answer = await answered;
    assert.equal(answer.type, 'success', JSON.stringify(answer));
    return answer.result;
  };
  await call('session.new', { capabilities: {} });
  const installed = await call('webExtension.install', { extensionData: { type: 'path', path: extension } });
  assert.equal(installed.extension, 'svc@example');
  const open = async (url) => {
    const { context } = await call('browsingContext.create', { type: 'tab' });
    await call('browsingContext.navigate', { context, url, wait: 'complete' });
    const run = async (expression) => {
      const { result } = await call('script.evaluate', { expression, target: { context }, awaitPromise: true, userActivation: true });
      return result.value;
    };
    // A click of the user, without which Firefox lets no extension ask for anything.
    const press = async (selector) => {
      await run(`document.querySelector('${selector}').scrollIntoView()`);
      const { nodes } = await call('browsingContext.locateNodes', { context, locator: { type: 'css', value: selector } });
      const origin = { type: 'element', element: { sharedId: nodes[0].sharedId } };
      const steps = [{ type: 'pointerMove', x: 0, y: 0, origin }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }];
      await call('input.performActions', { context, actions: [{ type: 'pointer', id: 'mouse', actions: steps }] });
    };
    return { run, press };
  };
  await start();

  // Its settings, as a user enters them.
  const options = await open(`moz-extension://${id}/options.html`);
  await until('the settings are shown', () => options.run("document.getElementById('form').onsubmit !== null"));
  await options.run(`document.querySelector('[name=service]').value = 'http://127.0.0.1:${port}'`);
  await options.press('button');
  await until('the service answers', async () => (await options.run("document.getElementById('problem').textContent")) === 'Saved; the service answers.');
  const page = await open(origin);
  const click = (name) => page.press(`#${name}`);

  // Accepted.
  await click('large-one');
  const [pending] = await until('the download waits in the service', () => captures().length && captures());
  assert.equal(pending.url, `${origin}/large-one.bin`);
  assert.equal(pending.hasCookies, false, 'nobody allowed cookies');
  svc('capture', 'accept', '--all');
  await until('the service has the file', () => inService('large-one.bin'));
  assert(!inBrowser('large-one.bin'), 'the browser gave it up');
  console.log('accepted');

  // Rejected: neither has it.
  await click('large-two');
  await until('the download waits', () => captures().length);
  svc('capture', 'reject', '--all');
  assert.deepEqual(tasks().map(({ url }) => url), [`${origin}/large-one.bin`]);
  console.log('rejected');

  // Small files stay in the browser.
  await click('small');
  await until('the browser has the small file', () => inBrowser('small.bin') && fs.statSync(path.join(browsed, 'small.bin')).size === 1000);
  assert.deepEqual(captures(), []);
  console.log('left to the browser: small');

  // Away: the browser goes on with what was paused.
  await stop();
  await click('large-six');
  await until('the browser has the file while the service is away', () => inBrowser('large-six.bin') && fs.statSync(path.join(browsed, 'large-six.bin')).size === 2 * 1024 * 1024);
  console.log('away');
  assert(asked.some((request) => request.path === '/large-one.bin' && request.agent.includes('Firefox')));
} catch (error) {
  console.error(said, asked.map((request) => request.path));
  throw error;
} finally {
  await stop();
  firefox.kill('SIGKILL');
  site.closeAllConnections();
  site.close();
}
process.exit(0);
