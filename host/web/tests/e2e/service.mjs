// The real service in a temporary directory, on a free port.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  constructor(binary, port, root, environment, isDesktop) {
    this.binary = binary;
    this.port = port;
    this.root = root;
    this.environment = environment;
    this.isDesktop = isDesktop;
    this.log = '';
  }

  /**
   * With `hasKey` false the service waits for its set-up; `name` is what other devices call it. With `isDesktop` it is that of a
   * desktop without a session bus, whose `xdg-open` only notes what it is to open.
   */
  static async start(binary, { hasKey = true, name = 'Svc', isDesktop = false } = {}) {
    const root = mkdtempSync(join(tmpdir(), 'svc-e2e-'));
    for (const name of ['data', 'save']) mkdirSync(join(root, name));
    const environment = { ...process.env, SVC_MDNS: '0', SVC_LINK_NAME: name, ...(hasKey ? { SVC_TOKEN: KEY } : {}) };
    const service = new Service(binary, await freePort(), root, environment, isDesktop);
    if (isDesktop) service.#furnish();
    await service.launch();
    return service;
  }

  #furnish() {
    const { root, environment, port } = this;
    const switches = { version: 1, key: null, takeover: true, jsonrpc: true, api: true, mcp: false, cors: false, lan: false };
    mkdirSync(join(root, 'data/agent'));
    writeFileSync(join(root, 'data/agent/settings.json'), JSON.stringify({ ...switches, port, preferences: { revision: 0, values: {} } }));
    mkdirSync(join(root, 'bin'));
    writeFileSync(join(root, 'bin/xdg-open'), `#!/bin/sh\necho "$1" >>'${join(root, 'opened')}'\n`, { mode: 0o755 });
    Object.assign(environment, { PATH: `${join(root, 'bin')}:${environment.PATH}`, XDG_RUNTIME_DIR: root });
    delete environment.DBUS_SESSION_BUS_ADDRESS;
  }

  /** What the desktop was to open, as URIs without their scheme and percent signs. */
  get opened() {
    const noted = join(this.root, 'opened');
    return existsSync(noted) ? readFileSync(noted, 'utf8').trim().split('\n').map((uri) => decodeURIComponent(new URL(uri).pathname)) : [];
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get saveDir() {
    return join(this.root, 'save');
  }

  async launch() {
    const { port, root } = this;
    const command = this.isDesktop ? ['agent', '--keys', 'file'] : ['serve', '--bind', `127.0.0.1:${port}`];
    const options = [...command, '--data-dir', join(root, 'data'), '--save-dir', join(root, 'save')];
    this.child = spawn(this.binary, options, { env: this.environment, stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = new Promise((done) => this.child.once('exit', done));
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (text) => (this.log += text));
    const until = Date.now() + 20_000;
    for (;;) {
      const answer = await fetch(`${this.url}/ping`).catch(() => null);
      // A desktop has no set-up.
      const status = answer?.ok && !this.isDesktop ? await fetch(`${this.url}/api/v1/setup/status`).catch(() => null) : answer;
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
