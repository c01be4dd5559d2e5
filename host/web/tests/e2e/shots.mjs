// Pictures of every screen to look at: 1440, 768 and 390 wide, light and dark, English and Chinese.
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startOrigin } from './origin.mjs';
import { launch, open, pageOf } from './page.mjs';
import { KEY, Service } from './service.mjs';

const out = fileURLToPath(new URL('out/shots/', import.meta.url));
mkdirSync(out, { recursive: true });
const service = await Service.start(process.env.SVC_BIN);
const origin = await startOrigin();
const served = await pageOf(service);
const browser = await launch();
const add = (path, more = {}) => service.api('POST', 'tasks', { url: `${origin.url}/${path}`, ...more });

try {
  await add('file/ubuntu-26.04-desktop-amd64.iso?size=900000000&rate=800000');
  await add('file/dataset-09.tar.zst?size=2200000000&rate=3000000');
  await add('gone/report-final.pdf');
  await add('login/private-archive.zip');
  await add('status/404/season-2-episode-7-with-a-very-long-name-that-does-not-fit-into-its-column.mkv');
  await add('file/lecture-07.mp4?size=1400000');
  await add('file/photo-1.jpg?size=140000');
  await add('file/archlinux-2026.11.01-x86_64.iso?size=1200000', { startPaused: true });
  await add('file/x?size=1200000', { startPaused: true, fileName: '中文文件名_测试资料合集（第二版）.rar' });
  const sizes = [['desk', 1440, 900, false], ['tablet', 768, 1024, true], ['phone', 390, 844, true]];
  for (const language of ['en-GB', 'zh-CN']) {
    for (const [device, width, height, isTouch] of sizes) {
      for (const scheme of ['light', 'dark']) {
        const { context, page } = await open(browser, { width, height, scheme, language, isTouch });
        const shot = (name) => page.screenshot({ path: `${out}${name}-${device}-${scheme}-${language.slice(0, 2)}.png` });
        await page.goto(served.url);
        await page.locator('input[type=password]').fill(KEY);
        await page.keyboard.press('Enter');
        await page.locator('[data-id]').first().waitFor();
        await page.waitForTimeout(700);
        await shot('tasks');
        const id = await page.locator('[data-id]', { hasText: 'dataset' }).getAttribute('data-id');
        await page.evaluate((wanted) => (location.hash = `#/tasks?o=${wanted}`), id);
        await page.locator('aside dl').first().waitFor();
        await page.waitForTimeout(1200);
        await shot('details');
        await page.evaluate(() => (location.hash = `#/add?url=${encodeURIComponent('https://downloads.example/a.iso\nmagnet:?xt=urn:btih:' + 'c'.repeat(40) + '&dn=Some+Magnet')}`));
        await page.getByRole('dialog').waitFor();
        await page.waitForTimeout(900);
        await shot('add');
        await page.keyboard.press('Escape');
        for (const name of ['queues', 'feeds', 'plugins', 'market', 'devices', 'settings']) {
          await page.evaluate((to) => (location.hash = `#/${to}`), name);
          await page.waitForTimeout(500);
          if (await page.locator('main h1').count()) await shot(name);
        }
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
  await served.stop();
  await origin.stop();
  await service.stop();
}
process.exit(0);
