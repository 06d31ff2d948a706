// The published clients of MAP against the hub: every call they have, every frame they get held against the schema.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import Ajv2020 from 'ajv/dist/2020.js';
import { AgentConnection, ClientConnection, GatewayConnection, websocketStream } from '@multi-agent-protocol/sdk';
import WebSocket from 'ws';
import { Hub } from '../../frontend/tests/browser/hub.mjs';

const schema = JSON.parse(readFileSync(new URL('../../schemas/map/map.schema.json', import.meta.url)));
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addFormat('uri', true);
ajv.addSchema(schema);
const defs = Object.fromEntries(Object.entries(schema.$defs).filter(([name, d]) => d['x-method'] && name.endsWith('Request')).map(([name, d]) => [d['x-method'], name.replace(/Request$/, 'Response')]));
const check = (name) => ajv.getSchema(`${schema.$id}#/$defs/${name}`);
const events = new Set(schema.$defs.EventType.enum);
const wrong = [];
const called = new Set();

/** What these clients want besides the schema: the time of a message, and what they put into its meta. */
function plain(v) {
  if (v === null || typeof v !== 'object') return v;
  for (const [k, x] of Object.entries(v)) {
    if (k === 'message' && x && typeof x === 'object' && 'from' in x) { delete x.timestamp; if (x.meta) delete x.meta.protocol; }
    plain(x);
  }
  return v;
}

/** A WebSocket that holds every frame of the hub against the schema. */
class Checked extends WebSocket {
  constructor(...args) {
    super(...args);
    const asked = new Map();
    const send = this.send.bind(this);
    this.send = (text, ...rest) => {
      const frame = JSON.parse(text);
      if (frame.id !== undefined) { asked.set(frame.id, frame.method); called.add(frame.method); }
      return send(text, ...rest);
    };
    this.on('message', (data) => {
      const frame = plain(JSON.parse(String(data)));
      const hold = (name, value) => { const f = check(name); if (!f(value)) wrong.push(`${name}: ${JSON.stringify(f.errors)} ${JSON.stringify(value).slice(0, 400)}`); };
      if (frame.method === 'map/event') { if (events.has(frame.params.event.type)) hold('EventNotification', frame); }
      else if (frame.method === 'map/message') hold('MessageNotification', frame);
      else if (frame.id !== undefined && frame.id !== null) {
        hold('MAPResponse', frame);
        const def = defs[asked.get(frame.id)];
        if (frame.result && def && frame.result.success !== false) hold(def, frame.result);
      }
    });
  }
}
globalThis.WebSocket = Checked;

let hub, url;
before(async () => { hub = await Hub.start(); url = `${hub.url.replace('http', 'ws')}/map`; });
after(() => hub.end());
const agent = (name, o = {}) => AgentConnection.connect(url, { name, ...o });
const client = (name, o = {}) => ClientConnection.connect(url, { name, ...o });
const refusal = (code) => (e) => e.code === code;
const until = async (what, ok) => {
  for (const end = Date.now() + 15_000; Date.now() < end;) { const got = await ok(); if (got) return got; await new Promise((r) => setTimeout(r, 20)); }
  throw new Error(`not in time: ${what}`);
};
const item = (title) => until(title, async () => (await hub.call('GET', '/v1/messages?protocol=map&limit=100')).messages.find((m) => m.title === title));

test('agents come, say how they are, and go', async () => {
  const a = await agent('Worker', { role: 'worker', scopes: ['swarm:demo'] });
  assert.equal(a.agentId, 'Worker');
  await a.busy(); await a.idle();
  await a.updateState('x-thinking');
  await a.updateMetadata({ step: 1 });
  const kid = await a.spawn({ agentId: 'kid-1', name: 'Kid', role: 'helper', metadata: { task: 't' } });
  assert.equal(kid.agent.id, 'kid-1');
  assert.equal(kid.agent.parent, 'Worker');
  await a.createScope({ scopeId: 'room', name: 'Room' });
  await a.joinScope('room'); await a.leaveScope('room');
  await a.done({ exitCode: 0, exitReason: 'finished' });
  await a.disconnect();
});

test('messages reach whom they name, and answers come back', async () => {
  const a = await agent('a', { role: 'lead', scopes: ['s'] });
  const b = await agent('b', { role: 'worker', parent: 'a', scopes: ['s'] });
  const got = [];
  b.onMessage((m) => { got.push(m); });
  const answered = new Promise((r) => a.onMessage((m) => { if (m.meta?.isResult) r(m); }));
  b.onMessage((m) => { if (m.meta?.expectsResponse) void b.reply(m, { ok: true }); });
  await a.send({ agent: 'b' }, { n: 1 }, { expectsResponse: true, correlationId: 'c' });
  assert.equal((await answered).meta.correlationId, 'c');
  await a.sendToScope('s', 2); await a.send({ role: 'worker' }, 3); await a.send({ broadcast: true }, 4); await a.sendToChildren(5);
  await b.sendToParent(6); await b.sendToSiblings(7);
  await until('all of them', () => [1, 2, 3, 4, 5].every((n) => got.some((m) => (m.payload?.n ?? m.payload) === n)));
  await assert.rejects(a.send({ agent: 'nobody' }, 1), refusal(2001));
  await a.disconnect(); await b.disconnect();
});

test('a client looks, steers and follows events', async () => {
  const ui = await client('ui');
  const sub = await ui.subscribe({ eventTypes: ['agent_registered', 'agent_state_changed', 'message_delivered'] });
  const seen = [];
  sub.on('event', (e) => seen.push(e));
  const a = await agent('seen', { role: 'r' });
  assert.ok((await ui.listAgents()).agents.some((x) => x.id === 'seen'));
  assert.equal((await ui.getAgent('seen')).agent?.id ?? (await ui.getAgent('seen')).id, 'seen');
  await ui.getStructureGraph();
  await ui.suspendAgent('seen'); await ui.resumeAgent('seen');
  await ui.inject('seen', 'look here');
  await ui.send({ agent: 'seen' }, { hello: 1 });
  await until('events', () => seen.some((e) => e.type === 'agent_registered') && seen.filter((e) => e.type === 'agent_state_changed').length >= 2 && seen.some((e) => e.type === 'message_delivered'));
  await ui.listScopes(); await a.createScope({ scopeId: 'seen-room', name: 'Seen' }); assert.equal((await ui.getScope('seen-room')).id, 'seen-room'); await ui.getScopeMembers('seen-room'); await ui.sendToScope('seen-room', 1).catch(refusal(1003)); await ui.sendToRole('r', 1); await ui.broadcast(1);
  const past = await ui.replay({ limit: 5 });
  if (past) assert.equal(past.events.length, 5);
  await ui.listSessions();
  await ui.stopAgent('seen');
  await sub.unsubscribe();
  await a.disconnect(); await ui.disconnect();
});

test('a client that asks gets the answer of the agent, and of the person', async () => {
  const ui = await client('asker');
  const a = await agent('oracle');
  a.onMessage((m) => { if (m.meta?.expectsResponse) void a.reply(m, { answer: 42 }); });
  const r = await ui.request({ agent: 'oracle' }, { ask: 1 });
  assert.equal((r.payload ?? r).answer, 42);
  const asking = ui.request({ agent: 'human' }, { text: 'Are you there?' });
  const it = await item('Are you there?');
  await hub.call('POST', `/v1/messages/${it.id}/resolve`, { resolution: 'answered', value: { text: 'Yes' } });
  const said = await asking;
  assert.equal((said.payload ?? said).text, 'Yes');
  await a.disconnect(); await ui.disconnect();
});

test('conversations', async () => {
  const a = await agent('writer');
  const ui = await client('reader');
  const made = await a.createConversation({ subject: 'Plan', initialParticipants: [{ id: 'human', role: 'moderator' }], initialTurn: { contentType: 'text', content: { text: 'Ship the plan?' } } });
  const id = made.conversation.id;
  await item('Ship the plan?');
  const turn = await a.recordTurn({ conversationId: id, contentType: 'text', content: { text: 'More' } });
  assert.equal(turn.turn.status, 'complete');
  assert.equal((await a.listTurns({ conversationId: id })).turns.length, 2);
  await a.getConversation(id, { participants: true, stats: true, recentTurns: 1 }); await a.listConversations();
  assert.equal((await ui.joinConversation({ conversationId: id, catchUp: { from: 0, limit: 10, includeSummary: true } })).history.length, 2);
  await a.inviteToConversation({ conversationId: id, participant: { id: 'somebody' } });
  await a.sendWithMail({ agent: 'writer' }, { n: 1 }, id);
  await a.createThread({ conversationId: id, rootTurnId: made.initialTurn.id, subject: 'Side' }); await a.listThreads({ conversationId: id });
  await a.getConversationSummary({ conversationId: id });
  assert.equal((await ui.replayConversation({ conversationId: id })).turns.length, 3);
  await ui.leaveConversation(id); await a.closeConversation(id);
  await a.disconnect(); await ui.disconnect();
});

test('credentials are granted by the person, and the grant outlives the hub', async () => {
  await hub.call('PUT', '/api/secrets/NPM', { value: 'npm_secret' });
  await hub.call('PATCH', '/v1/settings', { 'map.credentials': ['npm:publish=NPM'] });
  const a = await agent('publisher');
  assert.deepEqual((await a.callExtension('cred/list', {})).scopes, ['npm:publish']);
  const wish = { scope: 'npm:publish', resource: 'acme' };
  const cut = assert.rejects(a.callExtension('cred/get', wish));
  const it = await item('publisher asks for a credential: npm:publish');
  await hub.down('SIGKILL');
  await cut;
  await hub.up();
  await hub.call('POST', `/v1/messages/${it.id}/resolve`, { resolution: 'answered', value: 'hour' });
  const b = await until('the agent again', () => agent('publisher').catch(() => null));
  assert.equal((await b.callExtension('cred/get', wish)).credential.token, 'npm_secret');
  await hub.down('SIGKILL');
  await hub.up();
  const c = await agent('publisher');
  const got = await c.callExtension('cred/get', wish);
  assert.equal(got.credentialType, 'bearer_token');
  assert.ok(Date.parse(got.expiresAt) > Date.now());
  await assert.rejects(c.callExtension('cred/get', { scope: 'npm:publish', resource: 'other', _meta: { waitMs: 0 } }), refusal(11002));
  await hub.call('PATCH', '/v1/settings', { 'map.credentials': [] });
  await c.disconnect();
});

test('a workspace is searched and read', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'deskbell-workspace-'));
  writeFileSync(join(dir, 'plan.md'), '# Plan\nfirst\n');
  await hub.call('PATCH', '/v1/settings', { 'map.workspaces': [`reader-agent=${dir}`] });
  const a = await agent('reader-agent');
  assert.deepEqual((await a.callExtension('workspace/search', { agentId: 'reader-agent', query: 'plan' })).files.map((f) => f.path), ['plan.md']);
  assert.equal((await a.callExtension('workspace/list', { agentId: 'reader-agent' })).files.length, 1);
  assert.equal((await a.callExtension('workspace/read', { agentId: 'reader-agent', path: 'plan.md', lineRange: { start: 2, end: 2 } })).text, 'first\n');
  await assert.rejects(a.callExtension('workspace/read', { agentId: 'reader-agent', path: '../plan.md' }), refusal(12003));
  await a.disconnect();
});

test('a gateway of another system brings messages', async () => {
  const { token } = await hub.call('POST', '/v1/agents', { agent_id: 'other-hub' });
  await hub.call('PATCH', '/v1/settings', { 'map.system_id': 'this-hub', 'map.peers': ['other-hub=ws://127.0.0.1:1/map'] });
  const a = await agent('receiver');
  const got = new Promise((r) => a.onMessage(r));
  const ws = new Checked(url);
  await new Promise((r) => { ws.onopen = r; });
  const gate = new GatewayConnection(websocketStream(ws), { name: 'other-hub', routing: { systemId: 'other-hub', maxHops: 5, trackPath: true } });
  await gate.connect({ auth: { method: 'bearer', token } });
  assert.equal((await gate.connectToSystem('this-hub', url)).connected, true);
  assert.ok(gate.isSystemConnected('this-hub'));
  assert.equal((await gate.routeToSystem('this-hub', { id: 'm-1', from: 'far', to: { agent: 'receiver' }, payload: { n: 1 }, meta: {} })).routed, true);
  assert.equal((await got).from, 'far@other-hub');
  await assert.rejects(a.send({ agent: 'far@other-hub' }, 'back'), refusal(5000));
  await gate.disconnect();
  await a.disconnect();
});

test('every method of the protocol is answered', async () => {
  const a = await agent('all', { scopes: ['all'] });
  const ask = async (method, params) => { try { return await a.callExtension(method, params); } catch (e) { assert.notEqual(e.code, -32601, method); assert.notEqual(e.code, -32603, method); return e; } };
  const c = (await ask('mail/create', {})).conversation.id;
  const params = {
    'map/agents/get': { agentId: 'all' }, 'map/agents/update': { agentId: 'all', state: 'idle' }, 'map/agents/stop': { agentId: 'x' }, 'map/agents/suspend': { agentId: 'x' }, 'map/agents/resume': { agentId: 'x' },
    'map/agents/unregister': { agentId: 'x' }, 'map/send': { to: 'all', payload: 1 }, 'map/unsubscribe': { subscriptionId: 'x' }, 'map/scopes/get': { scopeId: 'all' }, 'map/scopes/delete': { scopeId: 'x' },
    'map/scopes/join': { scopeId: 'all', agentId: 'all' }, 'map/scopes/leave': { scopeId: 'all', agentId: 'all' }, 'map/scopes/members': { scopeId: 'all' }, 'map/inject': { agentId: 'all', content: 1 },
    'map/federation/connect': { systemId: 's', endpoint: 'wss://example.org' }, 'map/federation/route': { systemId: 's', message: { id: '1', from: 'a', to: 'b' } }, 'map/session/load': { sessionId: 'x' },
    'cred/get': { scope: 's', resource: 'r' }, 'workspace/search': { agentId: 'all', query: 'q' }, 'workspace/list': { agentId: 'all' }, 'workspace/read': { agentId: 'all', path: 'p' },
    'mail/invite': { conversationId: c, participant: { id: 'z' } }, 'mail/turn': { conversationId: c, contentType: 'text', content: 'x' }, 'mail/thread/create': { conversationId: c, rootTurnId: 'x' }, 'map/auth/refresh': { refreshToken: 'x' },
  };
  const last = ['mail/leave', 'map/session/close', 'map/disconnect', 'map/connect'];
  for (const method of [...Object.keys(defs).filter((m) => !last.includes(m)), ...last.slice(0, 2)]) {
    await ask(method, params[method] ?? (method.startsWith('mail/') ? { conversationId: c } : {}));
  }
  const missing = Object.keys(defs).filter((m) => !called.has(m));
  assert.deepEqual(missing.filter((m) => m !== 'map/disconnect'), []);
});

test('a lost connection comes back to its agent', async () => {
  const a = await agent('phoenix');
  await a.send({ agent: 'human' }, { text: 'Wait for it?' }, { expectsResponse: true, correlationId: 'w' });
  const it = await item('Wait for it?');
  await hub.down('SIGKILL');
  await hub.up();
  await hub.call('POST', `/v1/messages/${it.id}/resolve`, { resolution: 'answered', value: { text: 'now' } });
  const again = await AgentConnection.connect(url, { name: 'phoenix' });
  assert.equal(again.agentId, 'phoenix');
  const m = await new Promise((r) => again.onMessage(r));
  assert.equal(m.payload.text, 'now');
  assert.equal(m.meta.correlationId, 'w');
  await again.disconnect();
});

test('frames fit the schema', () => assert.deepEqual(wrong, []));
