// What pages in a real browser can do to the service: their own origin everything, a foreign one nothing.
//
//     browser_gate.mjs SERVER DESKTOP OPEN   the key of the server and of the desktop that is open to the network is in
//                                            SVC_TOKEN, the other desktop has none
//
// Every page has the key and sends it, so that it is the origin that is refused and nothing else. A desktop without a key
// takes over from whoever may come. The browser is told that evil.test is this machine, which is what a page does that
// rebinds its name; that nas.test is, which is how others in the network see a desktop that is open to them; and that the
// foreign page came from the public network.

import { createRequire } from 'node:module';
import http from 'node:http';

const { chromium } = createRequire(`${process.env.SVC_CLIENTS}/`)('playwright-core');
const key = process.env.SVC_TOKEN;
const [service, desktop, open] = process.argv.slice(2, 5).map((address) => `http://${address}`);

// Runs in the page. 0 is what a page sees of an answer that the browser keeps from it.
const attempt = async ({ base, key }) => {
  const json = { 'Content-Type': 'application/json' };
  const status = async (path, options) => {
    try {
      return (await fetch(base + path, options)).status;
    } catch {
      return 0;
    }
  };
  const post = (path, headers, body) => status(path, { method: 'POST', headers, body: JSON.stringify(body) });
  const socket = (path, protocols) =>
    new Promise((done) => {
      const opened = new WebSocket(base.replace('http', 'ws') + path, protocols);
      opened.onopen = () => (opened.close(), done('open'));
      opened.onerror = () => done('refused');
    });
  const token = btoa(key).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return {
    ping: await status('/ping'),
    list: await status('/api/v1/tasks', { headers: { Authorization: `Bearer ${key}` } }),
    takeover: await post('/download', { 'X-Svc-Client': 'page', 'X-Svc-Token': key }, { url: 'http://page.test/f' }),
    // Needs no leave of the browser to be sent.
    simple: await status('/jsonrpc', {
      method: 'POST',
      mode: 'no-cors',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'aria2.addUri', params: [`token:${key}`, ['http://page.test/s']] }),
    }),
    mcp: await post('/mcp', { ...json, Authorization: `Bearer ${key}` }, { jsonrpc: '2.0', id: 1, method: 'ping' }),
    rpc: await socket('/rpc', ['svc.rpc.v1', `svc.token.${token}`]),
    aria2: await socket('/jsonrpc'),
  };
};

const refused = { ping: 0, list: 0, takeover: 0, simple: 0, mcp: 0, rpc: 'refused', aria2: 'refused' };
const served = { ping: 200, list: 200, takeover: 200, simple: 200, mcp: 200, rpc: 'open', aria2: 'open' };
const opened = { ping: 200, list: 200, takeover: 200, simple: 0, mcp: 200, rpc: 'refused', aria2: 'open' };

// The management API and AI clients of a desktop are off, and a browser keeps a foreign page from seeing so.
const taken = { ping: 200, list: 404, takeover: 200, simple: 200, mcp: 404, rpc: 'open', aria2: 'open' };

// A page that came from the desktop itself under a wrong name sees its refusals.
const rebound = { ping: 403, list: 403, takeover: 403, simple: 403, mcp: 403, rpc: 'refused', aria2: 'refused' };

const failures = [];
let passed = 0;
const expect = (what, found, expected) => {
  for (const [name, value] of Object.entries(expected)) {
    if (found[name] === value) passed += 1;
    else failures.push(`${what}: ${name} is ${found[name]}, not ${value}`);
  }
};

const ask = async (method, path, body) => {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return (await fetch(service + path, { method, headers, body: body && JSON.stringify(body) })).json();
};
const tasks = async () => (await ask('GET', '/api/v1/tasks')).map((task) => task.url);
const allowEverybody = (isAllowed) =>
  new Promise((done, fail) => {
    const token = Buffer.from(key).toString('base64url');
    const socket = new WebSocket(`${service.replace('http', 'ws')}/rpc`, ['svc.rpc.v1', `svc.token.${token}`]);
    const send = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    const hello = { clientName: 'page', clientVersion: '1', minProtocolVersion: 1, maxProtocolVersion: 1, requestedRole: 'agent' };
    socket.onopen = () => send(1, 'system.hello', hello);
    socket.onerror = () => fail(new Error('no connection'));
    socket.onmessage = ({ data }) => {
      const { id, result } = JSON.parse(data);
      if (id === 1) send(2, 'agent.gateway.patch', { corsEnabled: isAllowed });
      if (id === 2) socket.close(), done(result);
    };
  });

const pages = http.createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end('<!doctype html>page'));
await new Promise((ready) => pages.listen(0, '127.0.0.1', ready));
const foreign = `http://127.0.0.1:${pages.address().port}/`;

const launch = (...args) => chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', ...args] });
const names = '--host-resolver-rules=MAP evil.test 127.0.0.1, MAP nas.test 127.0.0.1';
const browser = await launch(names, '--disable-features=LocalNetworkAccessChecks');
const from = async (url, base = service) => {
  const page = await browser.newPage();
  await page.goto(url);
  const found = await page.evaluate(attempt, { base, key });
  await page.close();
  return found;
};

// A browser that asks its user whether a public page may reach this machine: it may if the user and the service say so.
const guarded = async () => {
  const { port } = pages.address();
  const careful = await launch(`--ip-address-space-overrides=127.0.0.1:${port}=public`);
  const context = await careful.newContext();
  const ping = async () => {
    const page = await context.newPage();
    await page.goto(foreign);
    const found = await page.evaluate(attempt, { base: service, key });
    await page.close();
    return { ping: found.ping, list: found.list };
  };
  try {
    await allowEverybody(true);
    expect('a public page that the user did not allow', await ping(), { ping: 0, list: 0 });
    await context.grantPermissions(['local-network-access'], { origin: foreign.slice(0, -1) });
    expect('a public page that the user allowed', await ping(), { ping: 200, list: 200 });
    await allowEverybody(false);
    expect('a public page that the service does not allow', await ping(), { ping: 0, list: 0 });
  } finally {
    await careful.close();
  }
};

try {
  expect('a foreign page', await from(foreign), refused);
  expect('a page without an origin', await from('data:text/html,page'), refused);
  expect('what pages left behind', { tasks: (await tasks()).length }, { tasks: 0 });
  expect('the own page', await from(`${service}/`), served);
  expect('the switch', await allowEverybody(true), { corsEnabled: true });
  expect('a foreign page that everybody is allowed', await from(foreign), opened);
  expect('the switch', await allowEverybody(false), { corsEnabled: false });
  expect('a foreign page afterwards', await from(foreign), refused);
  expect('a foreign page at a desktop', await from(foreign, desktop), refused);
  const evil = desktop.replace('127.0.0.1', 'evil.test');
  expect('a page whose name was rebound', await from(evil, evil), rebound);
  expect('the own page of a desktop', await from(desktop, desktop), { ping: 200, list: 404, takeover: 200, simple: 200 });
  // By a name of this machine, which a desktop that is open to the network does not know.
  const named = open.replace('127.0.0.1', 'nas.test');
  expect('the own page of an open desktop', await from(named, named), taken);
  expect('a foreign page at an open desktop', await from(foreign, named), refused);
  await guarded();
} finally {
  await browser.close();
  pages.close();
}
for (const failure of failures) console.error(failure);
console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length ? 1 : 0);
