// The small window in which a desktop asks about a download, in a real browser.
//
//     confirmation.mjs EXECUTABLE DATA_DIR
//
// The executable is run as a desktop with its own data directory and no access key, as it is installed but for its port.

import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { debugging, desktop, display, listen, until as within } from './desktop.mjs';

const { chromium } = createRequire(`${process.env.SVC_CLIENTS}/`)('playwright-core');
const [executable, directory] = process.argv.slice(2);

// Windows of a browser come later than answers of a service.
const WAIT = 60_000;
const until = (what, check) => within(what, check, WAIT);

const site = http.createServer((_, response) => response.end('bytes'));
const origin = await listen(site);
const [profile, programs] = ['profile', 'programs'].map((name) => path.join(directory, name));
for (const made of [profile, programs]) fs.mkdirSync(made, { recursive: true });

// What the service finds as the user's browser: Chromium with a profile of its own, which says how it was started.
const [starts, processes] = ['starts', 'processes'].map((name) => path.join(directory, name));
fs.writeFileSync(path.join(programs, 'chromium'), `#!/bin/sh
printf '%s\\n' "$*" >> '${starts}'
echo $$ >> '${processes}'
exec env -u DBUS_SESSION_BUS_ADDRESS HOME='${directory}' PATH=/usr/bin:/bin /usr/bin/chromium --no-sandbox --disable-gpu --remote-debugging-port=0 --user-data-dir='${profile}' "$@"
`, { mode: 0o755 });
const opened = path.join(directory, 'opened');
fs.writeFileSync(path.join(programs, 'xdg-open'), `#!/bin/sh\nprintf '%s\\n' "$1" >> '${opened}'\n`, { mode: 0o755 });
const lines = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n') : []);

const screen = await display();
const { port, saved, svc, captures, start, stop } = await desktop(executable, directory, { PATH: `${programs}:/usr/bin:/bin`, DISPLAY: screen.name });
const handOver = async (name, filename) => {
  const body = JSON.stringify({ url: `${origin}/${name}`, filename, referrer: `${origin}/` });
  const answer = await fetch(`http://127.0.0.1:${port}/download`, { method: 'POST', headers: { 'content-type': 'application/json', 'X-Svc-Client': 'test' }, body });
  assert.equal(answer.status, 200);
};

let browser;
try {
  await start();
  await handOver('one.bin');
  const address = await debugging(profile, WAIT);
  // A browser that is still starting may take the connection and not answer.
  browser = await until('the browser answers', () => chromium.connectOverCDP(address, { timeout: 5000 }).catch(() => null));
  const context = browser.contexts()[0];
  // The browser ends with its last window; another one keeps it, as a browser that the user has open.
  await context.newPage();
  const isSmall = (page) => page.url().endsWith('#/confirm');
  const small = () => until('the small window', () => context.pages().find(isSmall));
  const page = await small();
  await page.getByText('one.bin').first().waitFor();
  const started = lines(starts);
  assert.equal(started.length, 1);
  assert.match(started[0], new RegExp(`^--app=http://127\\.0\\.0\\.1:${port}/#open=[\\w-]+/confirm --window-size=`));
  const ticket = /#open=([^/]+)/.exec(started[0])[1];
  const again = await fetch(`http://127.0.0.1:${port}/api/web/session`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ticket }) });
  assert.equal(again.status, 404, 'the ticket on the command line was good once');
  assert.equal(await page.locator('nav').count(), 0, 'one question, and nothing else');
  const size = await page.evaluate(() => [outerWidth, outerHeight]);
  assert(size[0] <= 520 && size[1] <= 480, `the window is small: ${size}`);

  // What comes meanwhile is in the same window, and its text is text.
  await handOver('evil.bin', '<img src=x onerror=close()>.bin');
  await page.getByText('img src=x').first().waitFor();
  const button = (of, name) => page.locator('li', { hasText: of }).getByRole('button', { name }).click();
  await button('img src=x', 'Not this');
  await until('one waits', () => captures().length === 1);
  const closed = page.waitForEvent('close');
  await button('one.bin', 'Download');
  await closed;
  await until('the accepted file is there', () => fs.existsSync(path.join(saved, 'one.bin')));
  assert.equal(lines(starts).length, 1);
  console.log('confirmed in the window, which closed');

  // A browser that runs opens the next one. Closed without an answer, it comes back only for another download.
  await handOver('two.bin');
  const second = await small();
  await second.getByText('two.bin').first().waitFor();
  await second.close();
  // The service learns a moment later that the window is gone; what comes before that counts as shown in it.
  let count = 0;
  await until('the window is back', async () => {
    await handOver(`three-${(count += 1)}.bin`);
    await new Promise((next) => setTimeout(next, 1000));
    return lines(starts).length === 3;
  });
  const third = await small();
  await third.getByText(`three-${count}.bin`).first().waitFor();
  await third.getByText('two.bin').first().waitFor();
  assert.equal(lines(starts).length, 3);
  console.log('closed and opened again');
  svc('capture', 'reject', '--all');

  // Without notifications here, the setting leads to the page in the default browser.
  svc('config', 'server', 'set', 'confirmation=notification');
  await handOver('four.bin');
  await until('the page is opened', () => lines(opened).length === 1);
  assert.equal(lines(starts).length, 3);
  console.log('no window if the user wants none');
} finally {
  await browser?.close().catch(() => {});
  await stop();
  for (const started of lines(processes)) {
    try {
      process.kill(Number(started), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
  screen.stop();
  site.close();
}
process.exit(0);
