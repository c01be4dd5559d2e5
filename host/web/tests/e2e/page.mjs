// A browser whose console errors and policy violations fail the scene.
import { chromium, firefox } from 'playwright-core';
import { preview } from 'vite';
import { fileURLToPath } from 'node:url';
import { freePort } from './service.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Debian's Chromium, or with `firefox` its Firefox by WebDriver BiDi. playwright-core from 1.65 on asks that one for
 * `emulation.setMediaFeaturesOverride`, which its version with long support does not have.
 */
export function launch(name = 'chromium') {
  if (name === 'firefox') return firefox.launch({ channel: 'moz-firefox', executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr' });
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html svc-url";

/** Where the page of a service is: at the service itself, or, with SVC_DIST=1, at a server before it that has the newest `dist`. */
export async function pageOf(service) {
  const text = await (await fetch(`${service.url}/`, { headers: { accept: 'text/html' } })).text();
  if (text.includes('id="app"') && !process.env.SVC_DIST) return { url: service.url, stop: async () => {} };
  process.env.SVC_URL = service.url;
  const server = await preview({ root, logLevel: 'error', preview: { port: await freePort(), host: '127.0.0.1', headers: { 'content-security-policy': policy } } });
  return { url: `http://127.0.0.1:${server.httpServer.address().port}`, stop: () => new Promise((done) => server.httpServer.close(done)) };
}

/** What browsers write of a socket that is refused because there is no key yet. */
const REFUSED = [/favicon/, /status of 401/, /^Firefox can’t establish a connection to the server at ws:/];

export async function open(browser, { width = 1440, height = 900, scheme = 'light', language = 'en-GB', isTouch = false, serviceWorkers = 'allow', allowed = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, locale: language, hasTouch: isTouch, isMobile: isTouch, acceptDownloads: true, serviceWorkers });
  const page = await context.newPage();
  const problems = [];
  const note = (text) => {
    if (![...REFUSED, ...allowed].some((pattern) => pattern.test(text))) problems.push(text.slice(0, 600));
  };
  page.on('console', (message) => message.type() === 'error' && note(message.text()));
  page.on('pageerror', (error) => note(String(error.stack ?? error)));
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  page.setDefaultTimeout(10_000);
  return { context, page, problems };
}

export async function signIn(page, url, key, fragment = '') {
  await page.goto(`${url}/${fragment}`);
  await page.getByLabel('Access key').fill(key);
  await page.keyboard.press('Enter');
  await page.locator('[data-grid]').waitFor();
}
