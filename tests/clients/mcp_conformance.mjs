// Holds /mcp against the protocol's own conformance suite.
//
//     mcp_conformance.mjs ADDRESS        the key is in SVC_TOKEN
//
// The suite sends no key, so a proxy in between adds it. It has scenarios for everything that a server may offer; these
// are the ones of what this one does offer. Scenarios with tools call test tools of their own by name, which no other
// server has; the one about names of hosts is for servers without a key.

import { spawn } from 'node:child_process';
import http from 'node:http';

const SCENARIOS = ['server-initialize', 'ping', 'tools-list'];
const [host, port] = process.argv[2].split(':');
const suite = `${process.env.SVC_CLIENTS}/node_modules/@modelcontextprotocol/conformance/dist/index.js`;

const proxy = http.createServer((request, answer) => {
  const headers = { ...request.headers, authorization: `Bearer ${process.env.SVC_TOKEN}` };
  const onward = http.request({ host, port, path: request.url, method: request.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode, reply.headers);
    reply.pipe(answer);
  });
  onward.on('error', () => answer.destroy());
  request.pipe(onward);
});

const run = (scenario) =>
  new Promise((done) => {
    const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
    const child = spawn(process.execPath, [suite, 'server', '--url', url, '--scenario', scenario], { stdio: 'inherit' });
    child.on('exit', done);
  });

await new Promise((ready) => proxy.listen(0, '127.0.0.1', ready));
let failed = 0;
for (const scenario of SCENARIOS) failed += (await run(scenario)) === 0 ? 0 : 1;
proxy.close();
console.log(`${SCENARIOS.length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
