// What people do, against the real service. Each scene gets its own service, origin and browser context.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encode } from 'uqr';
import { KEY, Service } from './service.mjs';
import { open, signIn } from './page.mjs';

const row = (page, name) => page.getByRole('row').filter({ hasText: name });
const until = (page, test, argument) => page.waitForFunction(test, argument, { timeout: 20_000 });

function equal(found, expected, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

/** Names of the rows from top to bottom. */
const names = (page) => page.locator('[data-id] .name > .clip:first-child, [data-id] .head .name').allInnerTexts();

async function add(page, text) {
  await page.keyboard.press('n');
  await page.getByRole('textbox', { name: /Links, magnet links/ }).fill(text);
  await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
}

/** Opens the details of a task: with a double click, which Firefox's driver cannot do, or with Enter. */
async function openRow(page, one) {
  if (process.env.BROWSER !== 'firefox') return one.dblclick();
  await one.click();
  await page.keyboard.press('Enter');
}

/** Goes to a screen by its letter. */
async function place(page, letter) {
  // The page waits for the second key for a second and a half, which a busy machine may take between two calls.
  await Promise.all([page.keyboard.press('g'), page.keyboard.press(letter)]);
  if (letter === 't') await page.locator('[data-grid]').waitFor();
  else await page.getByRole('heading', { level: 1, name: { m: 'Market', p: 'Plugins', q: 'Queues' }[letter] }).waitFor();
}

/** The service compiles a plugin before it asks: seconds in a debug build, more beside other scenes. */
const COMPILES = 60_000;

/** Installs a plugin from a file and agrees to what it asks for. */
async function install(page, file) {
  await place(page, 'p');
  await page.locator('input[type=file][accept*=zip]').setInputFiles(file);
  const consent = page.getByRole('dialog').filter({ hasText: 'wants to run' });
  await consent.waitFor({ timeout: COMPILES });
  await consent.getByRole('button', { name: 'Allow and run' }).click();
  await consent.waitFor({ state: 'hidden' });
}

async function setSetting(page, identity, label, value) {
  await page.evaluate((name) => (location.hash = `#/plugins/${encodeURIComponent(name)}/settings`), identity);
  await page.getByLabel(label).first().fill(value);
}

/** The screens beside the list. */
const SCREENS = [
  'queues', 'feeds', 'feeds/new', 'plugins', 'plugins/unpack%40svc', 'market', 'market/sources', 'devices',
  ...['page', 'downloads', 'speed', 'torrents', 'seeding', 'network', 'link', 'plugins', 'after', 'webhooks', 'sites', 'access', 'api', 'metrics', 'logs', 'about'].map((part) => `settings/${part}`),
];

export const scenes = {
  'the set-up link leads to an empty list': {
    hasKey: false,
    allowed: [/status of 403|WebSocket connection/],
    async run({ page, url, service, check }) {
      await page.goto(`${url}/#setup=${service.setupCode}`);
      await page.getByRole('heading', { name: 'Set up Svc' }).waitFor();
      equal(new URL(page.url()).hash.includes(service.setupCode), false, 'the code in the address');
      await page.getByLabel('New access key').fill('short');
      await page.getByText(/to go/).waitFor();
      await page.getByLabel('New access key').fill(KEY);
      await page.getByLabel('The same again').fill(`${KEY}x`);
      await page.getByRole('button', { name: 'Set key' }).click();
      await page.getByText('The two are not the same.').waitFor();
      await check('set-up');
      await page.getByLabel('The same again').fill(KEY);
      await page.getByRole('button', { name: 'Set key' }).click();
      await page.getByRole('heading', { name: 'Paste a link to begin' }).waitFor();
      await check('empty list');
    },
  },

  'a wrong key is refused, signing out reaches other tabs': {
    allowed: [/status of 401|WebSocket connection/],
    async run({ page, context, url, check }) {
      await page.goto(url);
      await page.getByLabel('Access key').fill('wrong-key-123456');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('This key is not right.').waitFor();
      await check('wrong key');
      await signIn(page, url, KEY);
      const other = await context.newPage();
      await signIn(other, url, KEY);
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill('sign out');
      await page.keyboard.press('Enter');
      await page.getByLabel('Access key').waitFor();
      await other.getByLabel('Access key').waitFor();
      equal(await page.evaluate(() => [JSON.stringify(localStorage).includes('battery'), sessionStorage.length]), [false, 0], 'traces of the key');
    },
  },

  'fifty mixed links, a duplicate and a curl command are added': {
    async run({ page, url, origin, service, check }) {
      await signIn(page, url, KEY);
      const links = Array.from({ length: 47 }, (_, at) => `${origin.url}/file/part-${at}.bin?size=${1000 + at}`);
      await add(page, links[0]);
      await row(page, 'part-0.bin').waitFor();
      await page.keyboard.press('n');
      const text = [...links, `curl '${origin.url}/file/by-curl.bin?size=500' -H 'X-Test: 1' --compressed`, 'not a link', `magnet:?xt=urn:btih:${'b'.repeat(40)}&dn=By+Magnet`].join('\n');
      await page.getByRole('textbox', { name: /Links, magnet links/ }).fill(text);
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Here already').waitFor();
      await dialog.getByText('Not a link', { exact: true }).waitFor();
      await dialog.getByText('By Magnet').waitFor();
      await check('add sheet');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByText('Added 48 tasks').waitFor();
      await until(page, () => document.querySelector('[data-grid]')?.getAttribute('aria-rowcount') === '50');
      await page.keyboard.press('Escape');
      const tasks = await service.api('GET', 'tasks');
      equal((tasks.tasks ?? tasks).filter((one) => one.fileName === 'by-curl.bin').length, 1, 'tasks by curl');
    },
  },

  'a torrent file is dropped, one of its files is chosen': {
    async run({ page, url, service, check }) {
      await signIn(page, url, KEY);
      await page.evaluate(() => {
        const text = `d4:infod5:filesld6:lengthi5e4:pathl3:one5:a.txteed6:lengthi7e4:pathl3:two5:b.txteee4:name3:dir12:piece lengthi16384e6:pieces20:${'x'.repeat(20)}ee`;
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], 'some.torrent', { type: 'application/x-bittorrent' }));
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
      });
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Torrent file').waitFor();
      await dialog.getByPlaceholder(/Tick by name/).fill('b.txt');
      await dialog.getByText('1 file · 7 B').first().waitFor();
      await check('torrent in the sheet');
      await dialog.getByRole('button', { name: 'Add paused' }).click();
      await row(page, 'dir').waitFor();
      await openRow(page, row(page, 'dir'));
      await page.getByRole('tab', { name: 'Files' }).click();
      await page.getByRole('treeitem').filter({ hasText: 'b.txt' }).waitFor();
      const [task] = await service.api('GET', 'tasks').then((answer) => answer.tasks ?? answer);
      const files = await service.api('GET', `tasks/${task.taskId}/torrent/files`).catch(() => null);
      if (files) equal(files.files.map((file) => file.wanted), [false, true], 'wanted files');
      await check('torrent files');
    },
  },

  'each failure has its words and a button that helps': {
    async run({ page, url, origin, service, check }) {
      await signIn(page, url, KEY);
      for (const path of ['gone/a-gone.bin', 'status/404/b-missing.bin', 'status/403/c-forbidden.bin', 'login/d-login.bin?size=300', 'loop/e-loop.bin']) await service.api('POST', 'tasks', { url: `${origin.url}/${path}` });
      await service.api('POST', 'tasks', { url: 'http://127.0.0.1:1/f-closed.bin' });
      await row(page, 'a-gone.bin').getByText('The link has expired').waitFor();
      await row(page, 'b-missing.bin').getByText('The file is not at this link').waitFor();
      await row(page, 'c-forbidden.bin').getByText('The server refuses this link').waitFor();
      await row(page, 'e-loop.bin').getByText('The link leads in circles').waitFor();
      await check('failed rows');
      await row(page, 'd-login.bin').getByRole('button', { name: 'Sign in…' }).click();
      await page.getByLabel('User name').fill('user');
      await page.getByLabel('Password').fill('pass');
      await page.getByRole('button', { name: 'Sign in and retry' }).click();
      await row(page, 'd-login.bin').getByText('Done').waitFor();
      await row(page, 'a-gone.bin').getByRole('button', { name: 'Replace link…' }).click();
      await page.getByLabel('New link').fill(`${origin.url}/file/a-gone.bin?size=400`);
      await check('replace link');
      await page.keyboard.press('Enter');
      await row(page, 'a-gone.bin').getByText('Done').waitFor();
      await page.getByRole('button', { name: /need you/ }).click();
      await page.getByRole('dialog').getByText('The file is not at this link').waitFor();
      await check('needs you');
    },
  },

  'removal can be undone, and is done after eight seconds': {
    async run({ page, url, origin, service }) {
      await signIn(page, url, KEY);
      for (let at = 0; at < 30; at++) await service.api('POST', 'tasks', { url: `${origin.url}/file/undo-${at}.bin?size=50000000&rate=1000`, startPaused: at % 2 === 0 });
      const rows = (count) => until(page, (wanted) => document.querySelector('[data-grid]')?.getAttribute('aria-rowcount') === String(wanted + 1), count);
      await rows(30);
      await page.locator('[data-grid]').focus();
      await page.keyboard.press('Control+a');
      await page.keyboard.press('Delete');
      await rows(0);
      equal((await service.api('GET', 'tasks').then((answer) => answer.tasks ?? answer)).length, 30, 'tasks while it can be undone');
      await page.getByRole('button', { name: 'Undo' }).click();
      // Under the pointer, a note would stay.
      await page.mouse.move(5, 5);
      await rows(30);
      await page.locator('[data-grid]').focus();
      await page.keyboard.press('Control+a');
      await page.keyboard.press('Delete');
      await rows(0);
      const end = Date.now() + 15_000;
      while ((await service.api('GET', 'tasks').then((answer) => answer.tasks ?? answer)).length > 0) {
        if (Date.now() > end) throw new Error('the tasks were not removed');
        await page.waitForTimeout(200);
      }
    },
  },

  'removal with files deletes them, and says how many before': {
    async run({ page, url, origin, service, check }) {
      await signIn(page, url, KEY);
      await service.api('POST', 'tasks', { url: `${origin.url}/file/to-delete.bin?size=5000` });
      await row(page, 'to-delete.bin').getByText('Done').waitFor();
      equal(existsSync(join(service.saveDir, 'to-delete.bin')), true, 'the file before');
      await row(page, 'to-delete.bin').click();
      await page.keyboard.press('Shift+Delete');
      await check('remove with files');
      await page.getByRole('button', { name: /Delete 1 task, 4\.88/ }).click();
      await page.getByText('Paste a link to begin').waitFor();
      equal(existsSync(join(service.saveDir, 'to-delete.bin')), false, 'the file after');
    },
  },

  'order changes by keys and stays': {
    async run({ page, url, origin, service }) {
      for (const name of ['a', 'b', 'c', 'd']) await service.api('POST', 'tasks', { url: `${origin.url}/file/${name}.bin?size=1000`, startPaused: true });
      await signIn(page, url, KEY, '#/tasks?s=order');
      await until(page, () => document.querySelectorAll('[data-id]').length === 4);
      equal(await names(page), ['a.bin', 'b.bin', 'c.bin', 'd.bin'], 'order before');
      const shows = (expected) => until(page, (wanted) => [...document.querySelectorAll('[data-id] .name > .clip:first-child')].map((one) => one.innerText).join(' ') === wanted, expected);
      await row(page, 'd.bin').click();
      await page.mouse.move(300, 850);
      await page.keyboard.press('Alt+Home');
      await page.mouse.move(5, 5);
      await shows('d.bin a.bin b.bin c.bin');
      await page.keyboard.press('Alt+ArrowDown');
      await shows('a.bin d.bin b.bin c.bin');
      await page.reload();
      await shows('a.bin d.bin b.bin c.bin');
    },
  },

  'filters, views and columns survive a reload and follow to another device': {
    async run({ page, browser, url, origin, service, check }) {
      for (const name of ['one.iso', 'two.mp4', 'three.iso']) await service.api('POST', 'tasks', { url: `${origin.url}/file/${name}?size=1000`, startPaused: true });
      await signIn(page, url, KEY);
      await page.keyboard.press('/');
      await page.keyboard.type('iso -one');
      await until(page, () => document.querySelector('[data-grid]')?.getAttribute('aria-rowcount') === '2');
      await page.getByRole('button', { name: 'Save this view' }).click();
      await page.getByLabel('Name of the view').fill('Isos');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Columns' }).click();
      await page.getByRole('menuitemcheckbox', { name: 'Added' }).click();
      await page.getByRole('columnheader', { name: 'Added' }).waitFor();
      await check('filtered');
      await page.waitForTimeout(600);
      await page.reload();
      await page.getByRole('columnheader', { name: 'Added' }).waitFor();
      equal(await names(page), ['three.iso'], 'rows after a reload');
      const other = await open(browser);
      await signIn(other.page, url, KEY);
      await other.page.getByRole('columnheader', { name: 'Added' }).waitFor();
      await other.page.getByRole('button', { name: 'Isos', exact: true }).click();
      await until(other.page, () => document.querySelector('[data-grid]')?.getAttribute('aria-rowcount') === '2');
      equal(other.problems, [], 'problems of the other device');
      await other.context.close();
      await page.keyboard.press('/');
      await page.keyboard.press('Control+a');
      await page.keyboard.type('is:blue');
      await page.getByText('Not understood: is:blue').waitFor();
    },
  },

  'rows stand still under the pointer': {
    async run({ page, url, origin, service }) {
      for (const name of ['a', 'b', 'c']) await service.api('POST', 'tasks', { url: `${origin.url}/file/${name}.bin?size=1000`, startPaused: true });
      await signIn(page, url, KEY, '#/tasks?s=name');
      await until(page, () => document.querySelectorAll('[data-id]').length === 3);
      await row(page, 'b.bin').hover();
      await service.api('POST', 'tasks', { url: `${origin.url}/file/aa.bin?size=1000`, startPaused: true });
      await page.getByRole('button', { name: 'Order changed' }).waitFor();
      equal(await names(page), ['a.bin', 'b.bin', 'c.bin'], 'rows under the pointer');
      await page.mouse.move(5, 5);
      await until(page, () => document.querySelectorAll('[data-id]').length === 4);
      equal(await names(page), ['a.bin', 'aa.bin', 'b.bin', 'c.bin'], 'rows afterwards');
    },
  },

  'the details follow the selection and show every part': {
    async run({ page, url, origin, service, check }) {
      await service.api('POST', 'tasks', { url: `${origin.url}/file/first.bin?size=90000000&rate=200000` });
      await service.api('POST', 'tasks', { url: `${origin.url}/file/second.bin?size=1000`, startPaused: true });
      await signIn(page, url, KEY);
      await openRow(page, row(page, 'first.bin'));
      const drawer = page.getByRole('complementary');
      await drawer.getByRole('heading', { name: 'first.bin' }).waitFor();
      await drawer.getByText(/connections/).first().waitFor();
      await check('overview');
      await page.keyboard.press('2');
      await drawer.getByText('One file').waitFor();
      await page.keyboard.press('3');
      await drawer.getByText(/connections? · /).first().waitFor();
      await check('sources');
      await page.keyboard.press('4');
      await drawer.getByRole('listitem').first().waitFor();
      await check('history');
      await page.keyboard.press('5');
      await drawer.getByLabel('Speed limit of this task').fill('1M');
      await drawer.getByLabel('Tags, separated by commas').fill('work, Big One');
      await drawer.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved', { exact: true }).waitFor();
      await check('options');
      await page.keyboard.press('/');
      await page.keyboard.type('tag:"big one"');
      await until(page, () => document.querySelector('[data-grid]')?.getAttribute('aria-rowcount') === '2');
      await page.keyboard.press('Escape');
      await row(page, 'second.bin').click();
      await drawer.getByRole('heading', { name: 'second.bin' }).waitFor();
      await page.keyboard.press('F2');
      await page.getByLabel('New name').fill('renamed.bin');
      await page.keyboard.press('Enter');
      await row(page, 'renamed.bin').waitFor();
      await drawer.getByRole('heading', { name: 'renamed.bin' }).waitFor();
      await page.keyboard.press('Escape');
      await until(page, () => !document.querySelector('aside'));
    },
  },

  'a lost service is told, and the page heals by itself': {
    allowed: [/WebSocket|ERR_CONNECTION|Failed to load resource/],
    async run({ page, url, origin, service, check }) {
      await service.api('POST', 'tasks', { url: `${origin.url}/file/before.bin?size=1000`, startPaused: true });
      await signIn(page, url, KEY);
      await row(page, 'before.bin').waitFor();
      await service.quit('SIGKILL');
      await page.getByText(/Not connected since/).waitFor();
      await row(page, 'before.bin').click();
      equal(await page.getByRole('button', { name: 'Resume' }).isDisabled(), true, 'writes without a connection');
      await check('not connected');
      await page.mouse.move(5, 5);
      await service.launch();
      await page.getByText(/Not connected since/).waitFor({ state: 'hidden', timeout: 30_000 });
      await service.api('POST', 'tasks', { url: `${origin.url}/file/after.bin?size=1000`, startPaused: true });
      await row(page, 'after.bin').waitFor();
    },
  },

  'hostile names are text': {
    async run({ page, url, origin, service, check }) {
      const bad = ['<img src=x onerror=alert(1)>.bin', 'invoice\u202Efdp.exe', '{{constructor.constructor(1)}}', 'a'.repeat(180)];
      for (const fileName of bad) await service.api('POST', 'tasks', { url: `${origin.url}/file/x?size=10`, fileName, startPaused: true });
      await service.api('POST', 'tasks', { url: `${origin.url}/status/404/%3Cscript%3Ealert(1)%3C%2Fscript%3E` });
      page.on('dialog', () => {
        throw new Error('a name ran as a script');
      });
      await signIn(page, url, KEY);
      await until(page, () => document.querySelectorAll('[data-id]').length === 5);
      equal(await page.locator('main img, main script').count(), 0, 'elements made of names');
      await openRow(page, page.getByRole('row').nth(1));
      await page.getByRole('complementary').waitFor();
      await check('hostile names');
      await page.evaluate(() => (location.hash = '#/add?url=javascript:alert(1)'));
      await page.getByRole('dialog').getByText('Not a link').waitFor();
    },
  },

  'the main job by keyboard only': {
    async run({ page, url, origin, check }) {
      await page.goto(url);
      await page.getByLabel('Access key').waitFor();
      await page.getByLabel('Access key').focus();
      await page.keyboard.type(KEY);
      await page.keyboard.press('Enter');
      await page.locator('[data-grid]').waitFor();
      await page.keyboard.press('n');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.type(`${origin.url}/file/by-keys.bin?size=90000000&rate=100000`);
      await page.getByText('by-keys.bin').waitFor();
      await page.keyboard.press('Control+Enter');
      await row(page, 'by-keys.bin').waitFor();
      await until(page, () => !document.querySelector('dialog[open]'));
      await page.locator('[data-grid]').focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('p');
      await row(page, 'by-keys.bin').getByText('Paused').waitFor();
      await page.keyboard.press('p');
      await row(page, 'by-keys.bin').getByText('Downloading').waitFor();
      await page.keyboard.press('Shift+F10');
      await page.getByRole('menu').waitFor();
      await check('menu');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Enter');
      await page.getByRole('complementary').waitFor();
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.getByRole('dialog').getByText('Pause or resume').waitFor();
      await check('keys');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+k');
      await page.keyboard.type('by-keys');
      await page.getByRole('option').filter({ hasText: 'by-keys' }).waitFor();
      await check('palette');
      await page.keyboard.press('Enter');
      await page.getByRole('complementary').waitFor();
      await page.locator('[data-grid]').focus();
      await page.keyboard.press('Delete');
      await page.getByRole('button', { name: 'Undo' }).waitFor();
    },
  },

  'dialogs, menus, fields with proposals and tooltips obey the keyboard': {
    async run({ page, url }) {
      const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '');
      await signIn(page, url, KEY);
      // A dialog holds the focus and gives it back.
      await place(page, 'q');
      const button = page.getByRole('button', { name: 'Add queue' });
      await button.focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      // After the last field comes the browser's own window, from which Firefox's driver does not bring the focus back.
      for (let step = process.env.BROWSER === 'firefox' ? 28 : 0; step < 30; step++) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(() => document.activeElement !== document.body && !document.activeElement?.closest('dialog'))) throw new Error('the focus has left the dialog');
      }
      // A click beside it does not lose what was typed, Escape closes it.
      await page.mouse.click(300, 700);
      await dialog.waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      equal((await focused()).trim(), 'Add queue', 'the focus after the dialog');
      // One with nothing to lose is closed by a click beside it.
      await page.keyboard.press('?');
      await dialog.waitFor();
      await page.mouse.click(5, 5);
      await dialog.waitFor({ state: 'hidden' });
      // A menu: arrows go round, a letter jumps, Escape gives the focus back.
      await place(page, 'p');
      await page.getByRole('button', { name: 'More', exact: true }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('menu').waitFor();
      const first = (await focused()).trim();
      await page.keyboard.press('ArrowUp');
      const last = (await focused()).trim();
      if (first === last) throw new Error(`the arrow does not move: ${first}`);
      await page.keyboard.press('ArrowDown');
      equal((await focused()).trim(), first, 'the entry after the last');
      await page.keyboard.press(last[0].toLowerCase());
      equal((await focused()).trim()[0], last[0], 'the entry of the letter');
      await page.keyboard.press('Escape');
      await page.getByRole('menu').waitFor({ state: 'hidden' });
      equal(await focused(), 'More', 'the focus after the menu');
      // The tooltip of a button that has the focus; Escape hides it.
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Tab');
      await page.getByRole('tooltip', { name: 'More' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('tooltip').waitFor({ state: 'hidden' });
      // A field with proposals takes any text.
      await page.evaluate(() => (location.hash = '#/settings/plugins'));
      const field = page.locator('input[role=combobox]').first();
      await field.focus();
      await page.keyboard.press('ArrowDown');
      await page.getByRole('option').first().waitFor();
      await page.keyboard.press('End');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.getByRole('listbox').waitFor({ state: 'hidden' });
      const chosen = await field.inputValue();
      if (!['off', 'auto'].includes(chosen)) throw new Error(`not a proposal: ${chosen}`);
      await field.fill('/opt/own/tool');
      equal(await page.getByRole('listbox').count(), 0, 'proposals for other text');
      await field.fill('au');
      await page.getByRole('option').first().click();
      equal(await field.inputValue(), 'auto', 'what a click chooses');
      // Tabs by arrows.
      await field.blur();
      await place(page, 'm');
      await page.getByRole('tab', { selected: true }).focus();
      await page.keyboard.press('ArrowRight');
      await page.getByRole('tab', { name: 'Updates', selected: true }).waitFor();
      await page.keyboard.press('Home');
      await page.getByRole('tab', { name: /^All/, selected: true }).waitFor();
    },
  },

  'a phone shows everything, from 320 pixels on': {
    options: { width: 390, height: 844, isTouch: true },
    async run({ page, context, url, origin, service, check }) {
      await service.api('POST', 'tasks', { url: `${origin.url}/file/on-a-phone-with-a-long-name-that-is-cut.bin?size=90000000&rate=100000` });
      await service.api('POST', 'tasks', { url: `${origin.url}/gone/gone.bin` });
      await signIn(page, url, KEY);
      await row(page, 'on-a-phone').waitFor();
      for (const width of [320, 390, 639]) {
        await page.setViewportSize({ width, height: 800 });
        await page.waitForTimeout(100);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 0) throw new Error(`${wide} pixels beside the page at ${width}`);
      }
      await page.setViewportSize({ width: 390, height: 844 });
      await check('phone list');
      await row(page, 'on-a-phone').tap();
      await page.getByRole('tab', { name: 'Overview' }).waitFor();
      await check('phone details');
      await page.getByRole('button', { name: 'Close details' }).tap();
      await row(page, 'gone.bin').getByRole('button', { name: /Actions for/ }).tap();
      await page.getByRole('menuitem', { name: 'Replace link…' }).waitFor();
      await check('phone menu');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Add downloads' }).tap();
      await page.getByRole('textbox', { name: /Links, magnet links/ }).fill(`${origin.url}/file/added.bin?size=100`);
      await page.getByRole('dialog').getByText('added.bin').waitFor();
      await check('phone add');
      await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).tap();
      await row(page, 'added.bin').waitFor();
      // The browser announces finished downloads if it may, which is asked for by the switch.
      await page.evaluate(() => (location.hash = '#/settings/page'));
      const notify = page.getByRole('switch', { name: 'Notify when downloads finish' });
      await notify.tap();
      await page.getByText('This browser does not allow notifications of this page').waitFor();
      equal(await notify.isChecked(), false, 'the switch that the browser refused');
      await check('phone settings');
      await context.grantPermissions(['notifications']);
      await notify.tap();
      await page.getByText('By this browser, while the page is open and hidden.').waitFor();
      equal(await notify.isChecked(), true, 'the switch that the browser allowed');
    },
  },

  'from the set-up link to the files of a plugin': {
    hasKey: false,
    allowed: [/status of 403|WebSocket connection/],
    async run({ page, url, origin, service, check }) {
      const plugin = join(service.root, 'checksum-list.zip');
      execFileSync(service.binary, ['plugin', 'pack', fileURLToPath(new URL('../../../../examples/plugin-js', import.meta.url)), '--output', plugin]);
      await page.goto(`${url}/#setup=${service.setupCode}`);
      await page.getByLabel('New access key').fill(KEY);
      await page.getByLabel('The same again').fill(KEY);
      await page.getByRole('button', { name: 'Set key' }).click();
      await page.getByRole('heading', { name: 'Paste a link to begin' }).waitFor();
      await page.keyboard.press('g');
      await page.keyboard.press('p');
      await page.locator('input[type=file][accept*=zip]').setInputFiles(plugin);
      const consent = page.getByRole('dialog').filter({ hasText: 'Checksum list 0.1.0 wants to run' });
      await consent.waitFor({ timeout: COMPILES });
      await check('consent');
      await consent.getByRole('button', { name: 'Allow and run' }).click();
      await consent.waitFor({ state: 'hidden' });
      await check('a plugin');
      await page.keyboard.press('g');
      await page.keyboard.press('t');
      await page.locator('[data-grid]').waitFor();
      await page.keyboard.press('n');
      await page.getByRole('textbox', { name: /Links, magnet links/ }).fill(`${origin.url}/release/1.0/SHA256SUMS`);
      const dialog = page.getByRole('dialog');
      await dialog.getByText('3 files').first().waitFor();
      await dialog.getByText('Checksum list').first().waitFor();
      await check('what a plugin finds');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      for (const name of ['disk.iso', 'notes.txt', 'manual.pdf']) await row(page, name).getByText('Done').waitFor();
      await page.getByRole('group', { name: 'Filters' }).getByText('Groups').waitFor();
      await check('a finished group');
      const tasks = await service.api('GET', 'tasks').then((answer) => answer.tasks ?? answer);
      equal(new Set(tasks.map((task) => task.groupId)).size, 1, 'groups');
    },
  },

  'a plugin logs in with a form, and again once the session has ended': {
    async run({ page, url, origin, check }) {
      await signIn(page, url, KEY);
      await install(page, fileURLToPath(new URL('../../../../plugins/bundled/http-form-login@svc-0.1.0.zip', import.meta.url)));
      await setSetting(page, 'http-form-login@svc', 'Login page', `${origin.url}/sign-in`);
      await page.getByLabel('Page for members').fill(`${origin.url}/members/`);
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved').waitFor();
      await page.getByRole('tab', { name: 'Accounts' }).click();
      const dialog = page.getByRole('dialog');
      const logIn = async (password) => {
        await page.getByRole('button', { name: 'With a password' }).first().click();
        await dialog.getByLabel('Site').fill(origin.url);
        await dialog.getByRole('button', { name: 'Continue' }).click();
        await dialog.getByLabel('User name').fill('anna');
        await dialog.getByLabel('Password').fill(password);
        equal(await dialog.getByLabel('Password').getAttribute('type'), 'password', 'type of the field');
        await check('a form of a plugin');
        await dialog.getByRole('button', { name: 'Continue' }).click();
      };
      // What the site says of it is shown, and the form again.
      await logIn('n0t-hers');
      await dialog.getByText('Wrong name or password.').waitFor();
      await dialog.getByLabel('User name').fill('anna');
      await dialog.getByLabel('Password').fill('op3n-sesame');
      await dialog.getByRole('button', { name: 'Continue' }).click();
      await dialog.waitFor({ state: 'hidden' });
      await page.getByText('logged in', { exact: true }).waitFor();
      await check('an account');
      await place(page, 't');
      await add(page, `${origin.url}/members/first.pdf?size=4000`);
      await row(page, 'first.pdf').getByText('Done').waitFor();
      // A download without a session waits for the next login: what needs the user leads there, and then it goes on by itself.
      origin.endSessions();
      await add(page, `${origin.url}/members/second.pdf?size=4000`);
      await row(page, 'second.pdf').getByText('The site wants you to log in').waitFor();
      await page.getByRole('button', { name: '1 needs you' }).click();
      await dialog.getByText('A login is needed').waitFor();
      await check('a login is needed');
      await dialog.getByRole('button', { name: 'Log in' }).click();
      await page.getByText('expired', { exact: true }).waitFor();
      await logIn('op3n-sesame');
      await dialog.waitFor({ state: 'hidden' });
      await place(page, 't');
      await row(page, 'second.pdf').getByText('Done').waitFor();
    },
  },

  'a plugin logs in with a QR code': {
    async run({ page, url, origin, service, check }) {
      const plugin = join(service.root, 'members-qr.zip');
      execFileSync(service.binary, ['plugin', 'pack', fileURLToPath(new URL('plugin-qr', import.meta.url)), '--output', plugin]);
      await signIn(page, url, KEY);
      await install(page, plugin);
      await setSetting(page, 'members-qr@example', 'Address of the site', origin.url);
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved').waitFor();
      await page.getByRole('tab', { name: 'Accounts' }).click();
      await page.getByRole('button', { name: 'With a QR code' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Site').fill(origin.url);
      await dialog.getByRole('button', { name: 'Continue' }).click();
      await dialog.getByText('Scan it with the app of the site.').waitFor();
      await dialog.getByText(/left$/).waitFor();
      await check('a QR code of a plugin');
      // The picture is the code of this address: its squares, not what is read out beside it.
      const link = `${origin.url}/qr/confirm?code=${origin.openCode()}`;
      const expected = encode(link, { ecc: 'M', border: 2 }).data.map((line) => line.map((isDark) => (isDark ? '#' : ' ')).join('')).join('\n');
      const drawn = await page.locator('svg.qr').evaluate((svg) => {
        const side = svg.viewBox.baseVal.width;
        const lines = Array.from({ length: side }, () => Array(side).fill(' '));
        for (const rect of svg.querySelectorAll('.ink')) for (let x = 0; x < rect.width.baseVal.value; x++) lines[rect.y.baseVal.value][rect.x.baseVal.value + x] = '#';
        return lines.map((line) => line.join('')).join('\n');
      });
      equal(drawn, expected, 'the code');
      await fetch(link);
      await dialog.waitFor({ state: 'hidden' });
      await page.getByText('Anna').waitFor();
      await page.getByText('logged in', { exact: true }).waitFor();
      await place(page, 't');
      await add(page, `${origin.url}/members/album.zip?size=4000`);
      await row(page, 'album.zip').getByText('Done').waitFor();
      // Logged out, the account is gone.
      await page.evaluate(() => (location.hash = '#/plugins/members-qr%40example/accounts'));
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByRole('alertdialog').getByRole('button', { name: 'Log out' }).click();
      await page.getByText('Anna', { exact: true }).waitFor({ state: 'hidden' });
    },
  },

  'a feed is tried, subscribed to, and brings a file': {
    async run({ page, url, origin, check }) {
      await signIn(page, url, KEY, '#/tasks');
      await page.keyboard.press('g');
      await page.keyboard.press('f');
      await page.getByRole('button', { name: 'Add feed' }).click();
      await page.getByLabel('Address', { exact: true }).fill(`${origin.url}/feed.xml`);
      await page.getByLabel('Include').first().fill('show');
      await page.getByText('Would add 2 downloads').waitFor();
      await check('a feed is tried');
      await page.getByRole('switch', { name: 'Links may lead to private addresses' }).click();
      await page.getByRole('button', { name: 'Subscribe' }).click();
      await page.getByRole('heading', { name: 'Shows' }).waitFor();
      await page.getByText('Show S01E02').waitFor();
      origin.episodes.push('Show S01E03');
      // A feed that was just read is not read again within the same second.
      await page.waitForTimeout(1100);
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.getByText('Show S01E03').waitFor();
      await check('items of a feed');
      await page.getByRole('link', { name: 'Task', exact: true }).click();
      await row(page, 'Show S01E03').getByText('Done').waitFor();
    },
  },

  'two services are paired, and one sends the other a download': {
    async run({ page, browser, url, origin, service, check }) {
      const second = await Service.start(service.binary);
      const other = await open(browser);
      try {
        for (const [which, address] of [[page, url], [other.page, second.url]]) {
          await signIn(which, address, KEY);
          await which.keyboard.press('g');
          await which.keyboard.press('d');
          await which.getByText('No paired devices').waitFor();
          await which.getByRole('button', { name: 'Pair a device' }).click();
        }
        await other.page.getByRole('button', { name: 'Show a code' }).click();
        const code = await other.page.locator('p.code').innerText();
        await check('pairing');
        await page.getByLabel('Code').fill(code.replace(/\D/g, ''));
        await page.getByLabel('Its address').fill(new URL(second.url).host);
        await page.getByRole('button', { name: 'Connect' }).click();
        const digits = (which) => which.locator('p.digits').innerText();
        await other.page.getByText('wants to pair').waitFor();
        equal(await digits(page), await digits(other.page), 'digits of both');
        await check('digits');
        await other.page.getByRole('button', { name: 'The same' }).click();
        await page.getByRole('button', { name: 'The same' }).click();
        await page.getByText('online', { exact: true }).waitFor();
        // What a device sends may lead to public addresses only, unless its owner says otherwise.
        await other.page.getByRole('button', { name: /^More for/ }).click();
        await other.page.getByRole('menuitemcheckbox', { name: 'Its links may lead to private addresses' }).click();
        await other.page.keyboard.press('Escape');
        await other.page.getByRole('menu').waitFor({ state: 'hidden' });
        await check('a paired device');
        await page.getByRole('button', { name: 'Send', exact: true }).click();
        await page.getByLabel('Links').fill(`${origin.url}/file/sent.bin?size=1000`);
        await check('send to a device');
        await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click();
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        await other.page.keyboard.press('g');
        await other.page.keyboard.press('t');
        await row(other.page, 'sent.bin').getByText('Done').waitFor();
        equal(other.problems, [], 'problems of the other device');
      } finally {
        await other.context.close();
        await second.stop();
      }
    },
  },

  'the sources of a task tell why they failed': {
    async run({ page, url, origin, service, check }) {
      const closed = 'http://127.0.0.1:1/closed.bin';
      const file = `${origin.url}/file/three-sources.bin?size=90000000&rate=200000`;
      const quick = `${origin.url}/file/two-sources.bin?size=4000`;
      await service.api('POST', 'tasks', { url: `${origin.url}/status/404/three-sources.bin`, mirrors: [closed, file], segments: 1 });
      await service.api('POST', 'tasks', { url: closed, mirrors: [quick], fileName: 'two-sources.bin' });
      await signIn(page, url, KEY);
      await openRow(page, row(page, 'three-sources.bin'));
      await page.getByRole('tab', { name: 'Sources' }).click();
      const source = (text) => page.getByRole('tabpanel').getByRole('listitem').filter({ hasText: text });
      await source('/status/404/').getByText('The file is not at this link').waitFor();
      await source(closed).getByText('The server does not accept connections').waitFor();
      await source(file).getByText(/sends now · 1 connection/).waitFor();
      equal(await page.getByRole('tabpanel').getByRole('listitem').count(), 3, 'sources');
      await check('sources while one sends');
      await page.getByRole('complementary').getByRole('button', { name: 'Pause' }).click();
      await source(file).getByText('sends now').waitFor({ state: 'hidden' });
      await row(page, 'two-sources.bin').getByText('Done').waitFor();
      await row(page, 'two-sources.bin').click();
      await source(quick).waitFor();
      await source(closed).getByText('The server does not accept connections').waitFor();
      await check('sources of a finished task');
      await page.getByRole('tab', { name: 'History' }).click();
      await page.getByRole('tabpanel').getByText(/closed\.bin failed/).waitFor();
      // Nothing opens files here: this is no desktop.
      await page.getByRole('tab', { name: 'Overview' }).click();
      await page.getByRole('button', { name: 'Save to this device' }).waitFor();
      equal(await page.getByRole('button', { name: 'Show in folder' }).count(), 0, 'buttons that open a folder');
    },
  },

  'a desktop opens files from the page, and obeys its preferences': {
    isDesktop: true,
    // It has no set-up to ask about.
    allowed: [/status of 404/],
    async run({ page, url, origin, service, check }) {
      const opened = async (path) => {
        for (let left = 100; service.opened.at(-1) !== path; left--) {
          if (left === 0) throw new Error(`${JSON.stringify(service.opened)} was opened instead of ${path}`);
          await page.waitForTimeout(50);
        }
      };
      await signIn(page, url, KEY);
      await add(page, `${origin.url}/file/a film.mkv?size=5000`);
      await row(page, 'a film.mkv').getByText('Done').waitFor();
      await openRow(page, row(page, 'a film.mkv'));
      const film = join(service.saveDir, 'a film.mkv');
      await page.getByRole('button', { name: 'Open', exact: true }).click();
      await opened(film);
      await page.getByRole('button', { name: 'Show in folder' }).click();
      await opened(service.saveDir);
      await check('a file that can be opened');
      await row(page, 'a film.mkv').getByRole('button', { name: /Actions for/ }).click();
      await page.getByRole('menuitem', { name: 'Show in folder' }).waitFor();
      await page.getByRole('menuitem', { name: /^Open/ }).click();
      await opened(film);
      // A file that is gone, and one that is a program: the cause is told.
      rmSync(film);
      await page.getByRole('button', { name: 'Open', exact: true }).click();
      await page.getByText('the file is gone').waitFor();
      await add(page, `${origin.url}/file/setup.exe?size=5000`);
      await row(page, 'setup.exe').getByText('Done').waitFor();
      await row(page, 'setup.exe').click();
      await page.keyboard.press('o');
      await page.getByText('this is a program').waitFor();
      equal(service.opened.length, 3, 'opened files');
      // Preferences act at once, and are found.
      await page.evaluate(() => (location.hash = '#/settings/desktop'));
      const preferences = async () => {
        const run = (...words) => execFileSync(service.binary, words, { env: { ...process.env, SVC_URL: service.url, SVC_TOKEN: KEY }, encoding: 'utf8' });
        return ['confirmation', 'notify_finished', 'tray'].map((name) => run('config', 'server', 'get', name).trim());
      };
      await page.getByRole('switch', { name: 'Icon in the tray' }).waitFor();
      equal(await preferences(), ['window', 'true', 'true'], 'preferences at first');
      await check('settings of a desktop');
      await page.getByRole('switch', { name: 'Announce finished downloads' }).click();
      await page.getByRole('switch', { name: 'Icon in the tray' }).click();
      await page.getByLabel('Confirm downloads from browsers in').selectOption('notification');
      await page.getByRole('button', { name: 'Reset Confirm downloads from browsers in' }).waitFor();
      await page.getByRole('button', { name: 'Reset Icon in the tray' }).click();
      await page.getByRole('button', { name: 'Reset Icon in the tray' }).waitFor({ state: 'hidden' });
      equal(await preferences(), ['notification', 'false', 'true'], 'preferences that were set');
      equal(await page.getByRole('region', { name: 'Changes that are not saved' }).count(), 0, 'bars of what is not saved');
      // What is asked for and then not wanted leaves its switch off.
      await page.evaluate(() => (location.hash = '#/settings/access'));
      const lan = page.getByRole('switch', { name: 'Other devices may connect' });
      await lan.click();
      await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('alertdialog').waitFor({ state: 'hidden' });
      equal(await lan.isChecked(), false, 'the switch of what was not wanted');
      await page.getByRole('searchbox', { name: 'Search the settings' }).fill('notify_finished');
      await page.getByText('1 setting found').waitFor();
      equal(await page.getByRole('switch', { name: 'Announce finished downloads' }).isChecked(), false, 'the switch that was found');
    },
  },

  'every screen opens and axe finds nothing': {
    async run({ page, url, check }) {
      await signIn(page, url, KEY);
      for (const name of SCREENS) {
        await page.evaluate((to) => (location.hash = `#/${to}`), name);
        await page.locator('main h1').first().waitFor();
        await until(page, () => !document.querySelector('[aria-busy=true], .skeleton'));
        await check(name);
      }
    },
  },

  'all screens together fetch at most 150 kB of script': {
    // What a worker answers is counted unpacked.
    options: { serviceWorkers: 'block' },
    async run({ page, url }) {
      const scripts = () =>
        page.evaluate(() => {
          const all = performance.getEntriesByType('resource').filter((one) => new URL(one.name).pathname.endsWith('.js'));
          return { bytes: all.reduce((sum, one) => sum + one.encodedBodySize, 0), left: all.filter((one) => one.encodedBodySize === 0).length };
        });
      await signIn(page, url, KEY);
      await page.waitForTimeout(3000);
      const first = await scripts();
      if (first.bytes === 0) throw new Error(`a first visit fetches ${first.bytes} bytes of script`);
      for (const name of SCREENS) {
        await page.evaluate((to) => (location.hash = `#/${to}`), name);
        await page.locator('main h1').first().waitFor();
        await until(page, () => !document.querySelector('.skeleton'));
      }
      const all = await scripts();
      console.log(`        first visit ${(first.bytes / 1000).toFixed(1)} kB of script, every screen ${(all.bytes / 1000).toFixed(1)} kB`);
      if (all.bytes > 150_000) throw new Error(`every screen together fetches ${all.bytes} bytes of script`);
    },
  },
};
