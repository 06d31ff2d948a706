// A hub of the test's own: the built headless program on a free port with a fresh data folder, and the agents that talk to it.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createServer } from 'node:http';

const program = resolve(process.env.DESKBELL_HEADLESS ?? join(import.meta.dirname, '../../../build/bin/deskbell-headless'));

export class Hub {
  static async start({ settings = {} } = {}) {
    const hub = new Hub();
    hub.data = mkdtempSync(join(tmpdir(), 'desk'));
    hub.settings = settings;
    await hub.up();
    hub.operatorToken = readFileSync(join(hub.data, 'operator.token'), 'utf8').trim();
    if (Object.keys(settings).length) await hub.call('PATCH', '/v1/settings', settings);
    hub.operator = (await hub.call('GET', '/api/state')).operator;
    return hub;
  }

  /** Starts the program, again at the same address if it ran before. */
  async up() {
    const addr = this.url ? this.url.replace('http://', '') : '127.0.0.1:0';
    const env = { ...process.env };
    for (const key of Object.keys(env)) if (key.startsWith('DESKBELL_') || key.startsWith('MA2H_')) delete env[key];
    env.DESKBELL_PI = join(import.meta.dirname, 'fakepi.mjs');
    env.PI_CODING_AGENT_SESSION_DIR = join(this.data, 'pi-sessions'); // and not what the person's own pi keeps
    this.process = spawn(program, ['serve', '--addr', addr, '--data', this.data], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.log = '';
    this.process.stderr.on('data', (d) => { this.log += d; });
    this.gone = new Promise((ended) => this.process.on('exit', (code, signal) => ended(signal ?? code)));
    this.process.on('error', (e) => { this.log += String(e); });
    this.url = await new Promise((found, failed) => {
      let out = '';
      this.process.stdout.on('data', (d) => {
        out += d;
        const ready = /^deskbell ready url=(\S+) data=.* pid=\d+$/m.exec(out);
        if (ready) found(ready[1]);
      });
      void this.gone.then((how) => failed(new Error(`the hub ended with ${how} before it was ready: ${this.log}`)));
      setTimeout(() => failed(new Error('the hub was not ready within 30 s')), 30_000).unref();
    });
  }

  async down(signal = 'SIGTERM') {
    this.process.kill(signal);
    return this.gone;
  }

  async end() {
    const how = await this.down();
    rmSync(this.data, { recursive: true, force: true });
    if (how !== 0 && how !== 'SIGKILL') throw new Error(`the hub ended with ${how}: ${this.log}`);
    if (/panic|level=ERROR/.test(this.log)) throw new Error(`the hub complained: ${this.log}`);
  }

  /** One call as the operator, or with any other token; answers the body, or fails when the status is not wanted. */
  async call(method, path, body, { token = this.operatorToken, want } = {}) {
    const headers = { 'Content-Type': 'application/json' };
    if (token) headers.Authorization = `Bearer ${token}`;
    const r = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await r.text();
    if (want !== undefined ? r.status !== want : !r.ok) throw new Error(`${method} ${path}: ${r.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  async agent(id = 'deploybot/dev-team') {
    const c = await this.call('POST', '/v1/agents', { agent_id: id });
    return new Agent(this, id, c.token);
  }

  ticket() {
    return this.call('POST', '/api/tickets', {}).then((t) => t.ticket);
  }
}

let serial = 0;

/** JSON, in which a bigint is a number with all its digits. */
const written = (v) => JSON.stringify(v, (_, x) => (typeof x === 'bigint' ? `\u0000${x}` : x)).replace(/"\\u0000(-?\d+)"/g, '$1');

export class Agent {
  constructor(hub, id, token) {
    Object.assign(this, { hub, id, token });
  }

  /** Posts a message and returns its id; `acceptedAt` of the last one is when the 202 was there. */
  async post(message, want = 202) {
    const body = written({
      ma2h_version: '0.6', created_at: new Date().toISOString(), idempotency_key: `k${++serial}-${Date.now()}`,
      agent: { id: this.id, run_id: 'run_1', runtime: 'cli', project: 'web-app' }, ...message,
    });
    const r = await fetch(`${this.hub.url}/v1/messages`, {
      method: 'POST', headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' }, body,
    });
    this.acceptedAt = performance.timeOrigin + performance.now();
    const text = await r.text();
    if (r.status !== want) throw new Error(`POST /v1/messages: ${r.status} ${text}`);
    return JSON.parse(text).id;
  }

  /** A question with two choices that the operator may answer. `request` adds to it. */
  ask(title, { request = {}, ...more } = {}) {
    const choices = request.mode ? {} : { mode: 'select', options: [
      { value: 'ship', label: 'Ship to prod now', description: 'promote the build' }, { value: 'hold', label: 'Hold for review' }, { value: 'abort', label: 'Abort the release' },
    ] };
    return this.post({ type: 'ask', title, ...more, request: { ...choices, allowed_resolvers: [this.hub.operator], ...request } });
  }

  task(title, action = {}, more = {}) {
    return this.post({ type: 'task', title, ...more, action: { instructions: '1. Do it.\n2. Look.', allowed_resolvers: [this.hub.operator], ...action } });
  }

  notify(title, more = {}) {
    return this.post({ type: 'notify', title, ...more });
  }

  get(id, query = '') {
    return this.hub.call('GET', `/v1/messages/${id}${query}`, undefined, { token: this.token });
  }

  /** What became of it, flat: status, value, comment, edited, checklist. */
  async answer(id) {
    const m = await this.get(id);
    return { title: m.title, status: m.status, ...m.response?.response };
  }

  /** What waits in its mailbox, as text. */
  async drain() {
    return JSON.stringify(await this.hub.call('GET', '/v1/inbox', undefined, { token: this.token }));
  }

  cancel(id) {
    return this.hub.call('POST', `/v1/messages/${id}/cancel`, { reason: 'not needed any more' }, { token: this.token });
  }

  /** Many questions, a few at a time. */
  async many(n, make) {
    const ids = new Array(n);
    let next = 0;
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let i = next++; i < n; i = next++) ids[i] = await this.ask(...make(i));
    }));
    return ids;
  }
}

/** Somewhere that answers are sent to: answers each request as `statuses` say in turn, the last one for ever. */
export async function receiver(...statuses) {
  const got = [];
  const server = createServer((req, res) => {
    let body = '';
    req.on('data', (d) => { body += d; });
    req.on('end', () => {
      const status = statuses[Math.min(got.length, statuses.length - 1)];
      got.push({ path: req.url, headers: req.headers, body });
      res.writeHead(status).end(status < 300 ? '' : 'not now');
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const host = `127.0.0.1:${server.address().port}`;
  return { got, host, url: `http://${host}/answers`, end: () => new Promise((ended) => { server.close(ended); server.closeAllConnections(); }) };
}
