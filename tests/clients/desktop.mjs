// A desktop for tests of browsers: the data directory of a service without an access key, as it is installed but for its port,
// and that service.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';

/** Looks until `check` finds something, and returns it. */
export const until = async (what, check, wait = 30_000) => {
  const end = Date.now() + wait;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((next) => setTimeout(next, 50));
  }
};

/** Starts a web server; returns its origin. */
export async function listen(site) {
  await new Promise((listening) => site.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${site.address().port}`;
}

/** A display without a screen. */
export async function display() {
  const server = spawn('/usr/bin/Xvfb', ['-displayfd', '1', '-screen', '0', '1000x800x24', '-nolisten', 'tcp'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const number = await new Promise((found) => server.stdout.once('data', (text) => found(String(text).trim())));
  return { name: `:${number}`, stop: () => server.kill('SIGKILL') };
}

/** Where the browser with this profile can be driven, once it has started. */
export function debugging(profile, wait) {
  const endpoint = path.join(profile, 'DevToolsActivePort');
  return until('the browser starts', () => fs.existsSync(endpoint) && `http://127.0.0.1:${fs.readFileSync(endpoint, 'utf8').split('\n')[0]}`, wait);
}

/** Prepares a service below `directory`, with further variables in its environment. */
export async function desktop(executable, directory, variables = {}) {
  const port = await new Promise((found) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => found(port));
    });
  });
  const [data, saved] = ['data', 'saved'].map((name) => path.join(directory, name));
  for (const made of [path.join(data, 'agent'), saved]) fs.mkdirSync(made, { recursive: true });
  fs.writeFileSync(path.join(data, 'agent/settings.json'), JSON.stringify({
    version: 1, key: null, takeover: true, jsonrpc: true, api: false, mcp: false, cors: false, lan: false, port, preferences: { revision: 0, values: {} },
  }));
  const environment = { PATH: process.env.PATH, HOME: directory, SVC_DATA_DIR: data, SVC_SAVE_DIR: saved, ...variables };
  const svc = (...arguments_) => execFileSync(executable, arguments_, { env: environment, encoding: 'utf8' });
  let agent;
  return {
    port, saved, svc,
    captures: () => JSON.parse(svc('capture', 'list', '--json')),
    async start() {
      agent = spawn(executable, ['agent'], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
      await new Promise((started) => agent.stdout.on('data', (text) => text.includes('Next:') && started()));
    },
    async stop() {
      if (!agent || agent.exitCode !== null) return;
      const ended = new Promise((over) => agent.on('exit', over));
      agent.kill('SIGTERM');
      await ended;
    },
  };
}
