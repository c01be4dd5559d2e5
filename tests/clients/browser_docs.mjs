// Reads and tries the interface in a real browser, as a person does: under a policy that it never breaks, with nothing
// from anywhere else, and with the key that the person enters.
//
//     browser_docs.mjs ADDRESS [FOLDER]        the key is in SVC_TOKEN; pictures of the page go into the folder

import { createRequire } from 'node:module';

const { chromium } = createRequire(`${process.env.SVC_CLIENTS}/`)('playwright-core');
const [address, folder] = process.argv.slice(2, 4);
const service = `http://${address}`;

const failures = [];
const expect = (what, found, expected) => {
  if (found !== expected) failures.push(`${what} is ${found}, not ${expected}`);
};

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  const picture = async (name) => folder && page.screenshot({ path: `${folder}/${name}.png` });
  page.on('pageerror', (error) => failures.push(`the script fails: ${error.message}`));
  page.on('console', (said) => said.type() === 'error' && failures.push(`the browser says: ${said.text()}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${service}/`) && !request.url().startsWith('data:')) failures.push(`${request.url()} was asked for`);
  });

  await page.goto(`${service}/api/v1/docs`);
  await page.locator('.opblock-tag-section').first().waitFor();
  const described = await (await fetch(`${service}/api/v1/openapi.json`)).json();
  const tags = described.tags.map((tag) => tag.name);
  const shown = await page.locator('.opblock-tag').evaluateAll((all) => all.map((one) => one.dataset.tag));
  expect('the parts shown', shown.join(), tags.join());
  await picture('docs');

  const attempt = async () => {
    const info = page.locator('#operations-management-info_view');
    if (!(await info.isVisible())) await page.locator('.opblock-tag[data-tag="management"]').click();
    if (!(await info.locator('.opblock-body').isVisible())) await info.locator('.opblock-summary-control').click();
    const begin = info.getByRole('button', { name: 'Try it out' });
    if (await begin.isVisible()) await begin.click();
    await info.getByRole('button', { name: 'Execute' }).click();
    const status = info.locator('.live-responses-table .response-col_status').last();
    await status.waitFor();
    await page.waitForLoadState('networkidle');
    return (await status.innerText()).trim().slice(0, 3);
  };
  const quietly = async (work) => {
    // The browser reports a refusal as an error, too.
    const before = failures.length;
    const found = await work();
    failures.splice(before, failures.length, ...failures.slice(before).filter((text) => !text.includes('status of 401')));
    return found;
  };
  expect('a call without the key', await quietly(attempt), '401');
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  await page.locator('.modal-ux input').first().fill(process.env.SVC_TOKEN);
  await picture('authorize');
  await page.locator('.modal-ux button.authorize').first().click();
  await page.locator('.modal-ux .btn-done').first().click();
  await page.getByRole('button', { name: 'Clear' }).first().click();
  expect('a call with the key', await attempt(), '200');
  await picture('tried');
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
  expect('what the page keeps', kept, '{}');
} finally {
  await browser.close();
}
for (const failure of failures) console.error(failure);
console.log(`${failures.length} failed`);
process.exit(failures.length ? 1 : 0);
