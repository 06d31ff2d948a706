// The host of an agent, as far as ACS sees it: signs, asks for leave, and waits. Enough of one to test the page with.
import { createHash, createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './harness.mjs';

/** RFC 8785: JSON.stringify writes strings and numbers as it wants them; the members it wants sorted by UTF-16 units. */
function canonical(v) {
  if (Array.isArray(v)) return `[${v.map(canonical).join(',')}]`;
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join(',')}}`;
}

const methods = ['steps/sessionStart', 'steps/turnStart', 'steps/userMessage', 'steps/toolCallRequest', 'steps/toolCallResult', 'steps/turnEnd', 'steps/sessionEnd', 'steps/subagentStart', 'system/ping'];

export class Guarded {
  /** A new session with its terms agreed. */
  static async start(hub, { platform = 'claude-code', id = `${platform}:web-app`, folder = '/home/maria/src/web-app' } = {}) {
    const g = Object.assign(new Guarded(), { hub, platform, id, folder, session: randomUUID(), secret: readFileSync(join(hub.data, 'acs', 'hmac.key'), 'utf8').trimEnd() });
    const { result } = await g.send('handshake/hello', {
      acs_versions_supported: ['0.1.0'], methods_implemented: methods, transports_supported: ['http'], provenance_producer: 'none', max_payload_size_bytes: 1_000_000,
      profiles_supported: ['acs-core'], signature_algorithms_supported: ['HMAC-SHA256'],
    });
    if (result?.negotiated_version !== '0.1.0') throw new Error(`no terms: ${JSON.stringify(result)}`);
    return g;
  }

  get key() { return `acs/${this.session}`; }

  request(method, payload) {
    const metadata = { agent_id: this.id, session_id: this.session, platform: this.platform, cwd: this.folder, permission_mode: 'default' };
    if (this.turn) metadata.turn_id = this.turn;
    return { jsonrpc: '2.0', id: randomUUID(), method, params: { acs_version: '0.1.0', request_id: randomUUID(), timestamp: new Date().toISOString(), metadata, payload } };
  }

  sign(m) {
    const key = Buffer.from(hkdfSync('sha256', this.secret, '', this.session, 32));
    m.params.signature = { algorithm: 'HMAC-SHA256', value: createHmac('sha256', key).update(canonical(m)).digest('base64'), key_id: 'default' };
    return m;
  }

  async post(m, signal) {
    const r = await fetch(`${this.hub.url}/acs`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(m), signal });
    return r.json();
  }

  send(method, payload, signal) { return this.post(this.sign(this.request(method, payload)), signal); }

  async step(method, payload) {
    const { result, error } = await this.send(method, payload);
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  /** A turn begins with what the person says to the agent. */
  async prompt(text) {
    this.turn = randomUUID();
    await this.step('steps/turnStart', { turn_id: this.turn, triggered_by: 'user_message' });
    return this.step('steps/userMessage', { content: [{ type: 'text', value: text }] });
  }

  result(tool, output = 'ok') { return this.step('steps/toolCallResult', { tool: { name: tool }, exit_status: 'success', outputs: [{ value: output }] }); }

  end() { return this.step('steps/sessionEnd', { reason: 'completed' }); }

  /** Asks for leave and does not wait: `answer` comes when it is there, `leave` goes away without it. */
  ask(tool, args) {
    const abort = new AbortController();
    const payload = { tool: { name: tool }, arguments: Object.fromEntries(Object.entries(args).map(([k, value]) => [k, { value }])) };
    const answer = this.send('steps/toolCallRequest', payload, abort.signal).then((a) => a.result ?? a, (e) => (abort.signal.aborted ? null : Promise.reject(e)));
    return { answer, leave: () => abort.abort() };
  }

  /** Asks for leave, and returns once the person is asked, with the id of the item. */
  async call(tool, args) {
    const before = new Set(await this.waiting());
    const asked = this.ask(tool, args);
    const id = await until('the call', async () => (await this.waiting()).find((x) => !before.has(x)));
    return { ...asked, id };
  }

  async waiting() {
    const { rows } = await this.hub.call('GET', '/api/items?box=needs&limit=500');
    return rows.filter((r) => r.ask === 'call').map((r) => r.id);
  }
}

/** The lower hexadecimal SHA-256 of a value's canonical form. */
export const hashOf = (v) => createHash('sha256').update(canonical(v)).digest('hex');
