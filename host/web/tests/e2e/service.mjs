// The real service in a temporary directory, on a free port.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const KEY = 'correct-horse-7-battery';

export function freePort() {
  return new Promise((done, failed) => {
    const server = createServer();
    server.once('error', failed);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

export class Service {
  constructor(binary, port, root, environment) {
    this.binary = binary;
    this.port = port;
    this.root = root;
    this.environment = environment;
    this.log = '';
  }

  /** With `hasKey` false the service waits for its set-up; `name` is what other devices call it. */
  static async start(binary, { hasKey = true, name = 'Svc' } = {}) {
    const root = mkdtempSync(join(tmpdir(), 'svc-e2e-'));
    for (const name of ['data', 'save']) mkdirSync(join(root, name));
    const environment = { ...process.env, SVC_MDNS: '0', SVC_LINK_NAME: name, ...(hasKey ? { SVC_TOKEN: KEY } : {}) };
    const service = new Service(binary, await freePort(), root, environment);
    await service.launch();
    return service;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get saveDir() {
    return join(this.root, 'save');
  }

  async launch() {
    const { port, root } = this;
    const options = ['serve', '--bind', `127.0.0.1:${port}`, '--data-dir', join(root, 'data'), '--save-dir', join(root, 'save')];
    this.child = spawn(this.binary, options, { env: this.environment, stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = new Promise((done) => this.child.once('exit', done));
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (text) => (this.log += text));
    const until = Date.now() + 20_000;
    for (;;) {
      const answer = await fetch(`${this.url}/ping`).catch(() => null);
      const status = answer?.ok ? await fetch(`${this.url}/api/v1/setup/status`).catch(() => null) : null;
      if (status?.ok) {
        if (!this.environment.SVC_TOKEN) return;
        const tasks = await fetch(`${this.url}/api/v1/tasks`, { headers: { authorization: `Bearer ${KEY}` } });
        if (tasks.ok) return;
      }
      if (Date.now() > until || this.child.exitCode !== null) throw new Error(`the service did not start:\n${this.log}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  /** The code of the one-time link that it printed. */
  get setupCode() {
    return /#setup=(\S+)/.exec(this.log)?.[1] ?? '';
  }

  async api(method, path, body) {
    const answer = await fetch(`${this.url}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? null : JSON.parse(text);
  }

  async quit(signal = 'SIGTERM') {
    this.child.kill(signal);
    await this.ended;
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.quit();
    rmSync(this.root, { recursive: true, force: true });
  }
}
