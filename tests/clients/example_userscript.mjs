// Installs the userscript of examples/userscript in a page of a real browser and clicks a link.
//
//     example_userscript.mjs SCRIPT EXECUTABLE ADDRESS   of a desktop; its access key is in SVC_TOKEN
//
// The user then confirms the download, which is what lets it reach this machine. The functions of a userscript manager are the test's: values, the menu, and requests that carry no origin.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import fs from 'node:fs';
import http from 'node:http';

const { chromium } = createRequire(`${process.env.SVC_CLIENTS}/`)('playwright-core');
const [script, executable, address] = process.argv.slice(2);
const service = `http://${address}`;
const key = process.env.SVC_TOKEN;

const site = http.createServer((request, response) => {
  if (request.url === '/file.bin') {
    site.emit('file', request.headers);
    response.end('bytes');
  } else {
    response.setHeader('Set-Cookie', 'visitor=42');
    response.setHeader('Content-Type', 'text/html');
    response.end('<a id="file" href="/file.bin">file</a>');
  }
});
await new Promise((listening) => site.listen(0, '127.0.0.1', listening));
const page_url = `http://127.0.0.1:${site.address().port}/page`;

const sent = [];
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await browser.newPage();
  await page.exposeFunction('managerRequest', async ({ method, url, headers, data }) => {
    const answer = await fetch(url, { method, headers, body: data });
    sent.push(answer.status);
    return { status: answer.status, responseText: await answer.text() };
  });
  await page.addInitScript(
    ([service, key]) => {
      const values = { service, key };
      globalThis.GM_getValue = (name, otherwise) => values[name] ?? otherwise;
      globalThis.GM_setValue = (name, value) => (values[name] = value);
      globalThis.GM_registerMenuCommand = () => {};
      globalThis.GM_xmlhttpRequest = ({ onload, onerror, ...request }) => managerRequest(request).then(onload, onerror);
    },
    [service, key],
  );
  await page.goto(page_url);
  await page.addScriptTag({ content: fs.readFileSync(script, 'utf8') });
  await page.click('#file', { modifiers: ['Alt'] });

  while (sent.length === 0) await page.evaluate(() => 0);
  const asked = once(site, 'file');
  execFileSync(executable, ['capture', 'accept', '--all', '--url', service], { stdio: 'inherit' });
  const [request] = await asked;
  if (sent.join() !== '200') throw new Error(`the service answered ${sent}`);
  if (page.url() !== page_url) throw new Error('the browser followed the link as well');
  if (request.cookie !== 'visitor=42' || request.referer !== page_url) {
    throw new Error(`the request had other cookies or another referrer: ${JSON.stringify(request)}`);
  }
} finally {
  await browser.close();
  site.close();
}
