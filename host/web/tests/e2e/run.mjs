// Runs the scenes against the service in SVC_BIN: `npm run e2e [-- WORDS]`, with BROWSER=firefox in Firefox. Screenshots go to tests/e2e/out.
import { mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startOrigin } from './origin.mjs';
import { launch, open, pageOf } from './page.mjs';
import { scenes } from './scenes.mjs';
import { Service } from './service.mjs';

const binary = process.env.SVC_BIN;
if (!binary) throw new Error('SVC_BIN must be the path of the executable svc');
/** Its driver has no touch and no choice of the theme. */
const isFirefox = process.env.BROWSER === 'firefox';
const wanted = process.argv.slice(2).join(' ');
const out = fileURLToPath(new URL('out/', import.meta.url));
mkdirSync(out, { recursive: true });
const axe = readFileSync(fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)), 'utf8');

/** A picture and axe's opinion, in both themes. */
async function check(page, name) {
  for (const scheme of isFirefox ? ['light'] : ['light', 'dark']) {
    if (!isFirefox) await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(150);
    // A picture adds a style for its time, which only Chromium's driver gets past the policy of the page.
    if (!isFirefox) await page.screenshot({ path: `${out}${name.replace(/\W+/g, '-')}-${scheme}.png` });
    // The page forbids scripts from elsewhere, so axe comes through the debugger.
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    if (found.violations.length > 0) {
      const told = found.violations.map((one) => `${one.id}: ${one.help}\n    ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary?.split('\n')[1] ?? ''}`).join('\n    ')}`);
      throw new Error(`axe, ${name}, ${scheme}:\n  ${told.join('\n  ')}`);
    }
  }
  if (!isFirefox) await page.emulateMedia({ colorScheme: 'light' });
}

const named = Object.entries(scenes).filter(([name]) => name.includes(wanted));
const left = named.filter(([, scene]) => !(isFirefox && scene.options?.isTouch));
let failures = named.length === 0 ? 1 : 0;
if (failures > 0) console.log(`no scene has ${JSON.stringify(wanted)} in its name`);

async function play(browser, name, scene) {
  const begin = performance.now();
  const service = await Service.start(binary, { hasKey: scene.hasKey ?? true, isDesktop: scene.isDesktop ?? false });
  const origin = await startOrigin();
  const served = await pageOf(service);
  const { context, page, problems } = await open(browser, { ...scene.options, allowed: scene.allowed });
  try {
    await scene.run({ page, context, browser, url: served.url, service, origin, check: (what) => check(page, what) });
    if (problems.length > 0) throw new Error(`on the console:\n  ${[...new Set(problems)].join('\n  ')}`);
    console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)`);
  } catch (error) {
    failures++;
    await page.screenshot({ path: `${out}failed-${name.replace(/\W+/g, '-')}.png` }).catch(() => {});
    console.log(`FAILED  ${name}\n  ${String(error.message ?? error).split('\n').slice(0, 14).join('\n  ')}${problems.length > 0 ? `\n  console: ${[...new Set(problems)].slice(0, 3).join('\n  ')}` : ''}`);
  } finally {
    await context.close();
    await served.stop();
    await origin.stop();
    await service.stop();
  }
}

// Side by side: a scene waits more than it computes. The server of SVC_DIST can stand before one service only.
await Promise.all(
  Array.from({ length: process.env.SVC_DIST ? 1 : 3 }, async () => {
    // One each: a window of Firefox that is not in front gets no event when the focus moves.
    const browser = await launch(isFirefox ? 'firefox' : 'chromium');
    for (let next = left.shift(); next; next = left.shift()) await play(browser, ...next);
    await browser.close();
  }),
);
console.log(failures === 0 ? 'all scenes passed' : `${failures} scenes failed`);
process.exit(failures === 0 ? 0 : 1);
