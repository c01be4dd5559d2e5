// Holds /mcp against all server scenarios of the protocol's own conformance suite.
//
//     mcp_conformance.mjs ADDRESS        the key is in SVC_TOKEN
//
// The suite sends no key, so a proxy in between adds it. Scenarios that must fail are listed here by name: they ask for
// what this server does not offer. One that passes although it is listed, fails although it is not, or is new, is an error.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

// What a server may offer and this one does not, and the scenarios that ask for it.
const EXPECTED_FAILURES = {
  'tools of the suite, called by names that no other server has': [
    'tools-call-simple-text', 'tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource',
    'tools-call-mixed-content', 'tools-call-with-logging', 'tools-call-error', 'tools-call-with-progress',
    'tools-call-sampling', 'tools-call-elicitation', 'json-schema-2020-12', 'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
  ],
  'logging to the client': ['logging-set-level'],
  completions: ['completion-complete'],
  resources: [
    'resources-list', 'resources-read-text', 'resources-read-binary', 'resources-templates-read',
    'resources-subscribe', 'resources-unsubscribe',
  ],
  prompts: [
    'prompts-list', 'prompts-get-simple', 'prompts-get-with-args', 'prompts-get-embedded-resource',
    'prompts-get-with-image',
  ],
  'a server without a key, which is the one that must look at names of hosts': ['dns-rebinding-protection'],
};
// Their checks are only made of servers that keep sessions.
const WITHOUT_CHECKS = ['server-sse-polling', 'server-sse-multiple-streams'];
const PASSING = ['server-initialize', 'ping', 'tools-list'];

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
await new Promise((ready) => proxy.listen(0, '127.0.0.1', ready));
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;

const child = spawn(process.execPath, [suite, 'server', '--url', url, '--suite', 'all'], {
  // Where it leaves a folder of results.
  cwd: fs.mkdtempSync(path.join(os.tmpdir(), 'conformance-')),
  stdio: ['ignore', 'pipe', 'inherit'],
});
let said = '';
child.stdout.on('data', (piece) => (said += piece));
await new Promise((done) => child.on('close', done));
proxy.close();

// `✗ ping: 0 passed, 1 failed`
const results = new Map();
for (const [, name, passed, failed] of said.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed/gm)) {
  results.set(name, { passed: Number(passed), failed: Number(failed) });
}
const expected = new Map([
  ...PASSING.map((name) => [name, ({ passed, failed }) => passed > 0 && failed === 0]),
  ...WITHOUT_CHECKS.map((name) => [name, ({ passed, failed }) => passed === 0 && failed === 0]),
  ...Object.values(EXPECTED_FAILURES).flat().map((name) => [name, ({ failed }) => failed > 0]),
]);
const wrong = [];
for (const [name, is] of expected) if (!results.has(name) || !is(results.get(name))) wrong.push(name);
for (const name of results.keys()) if (!expected.has(name)) wrong.push(name);
for (const name of wrong) console.error(`not as expected: ${name}: ${JSON.stringify(results.get(name))}`);
if (wrong.length) console.error(said);
console.log(`${results.size} scenarios: ${PASSING.length} pass, ${expected.size - PASSING.length} are not for this server`);
process.exit(wrong.length ? 1 : 0);
