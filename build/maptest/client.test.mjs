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
/** Methods that were answered with a result, which was held against the schema. */
const answered = new Set();
/** Calls of the published classes. What they have besides the protocol's methods is no call of ours. */
const used = new Set();
const besides = new Set(['constructor', 'createTask', 'assignTask', 'updateTask', 'listTasks', 'createACPStream', 'getACPStream', 'onReconnection', 'onStateChange', 'offMessage', 'offNotification', 'sendNotification']);
const calls = (C) => Object.entries(Object.getOwnPropertyDescriptors(C.prototype)).filter(([name, d]) => typeof d.value === 'function' && !besides.has(name));
for (const C of [AgentConnection, ClientConnection]) {
  for (const [name, d] of calls(C)) C.prototype[name] = function (...args) { used.add(`${C.name}.${name}`); return d.value.apply(this, args); };
}

/** What these clients want besides the schema: the time of a message, what they put into its meta, and acknowledgements where they said that they have them. */
function plain(v) {
  if (v === null || typeof v !== 'object') return v;
  for (const [k, x] of Object.entries(v)) {
    if (k === 'message' && x && typeof x === 'object' && 'from' in x) { delete x.timestamp; if (x.meta) delete x.meta.protocol; }
    if (k === 'capabilities' && x?.streaming) delete x.streaming;
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
      if (frame.id !== undefined) asked.set(frame.id, frame.method);
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
        if (frame.result && def && frame.result.success !== false) { hold(def, frame.result); answered.add(asked.get(frame.id)); }
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
  assert.equal((await a.callExtension('map/scopes/delete', { scopeId: 'room' })).deleted, true);
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
  assert.deepEqual((await a.callExtension('cred/status', {})).providers, ['deskbell']);
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
    'mail/invite': { conversationId: c, participant: { id: 'z' } }, 'mail/turn': { conversationId: c, contentType: 'text', content: { text: 'x' } }, 'mail/thread/create': { conversationId: c, rootTurnId: 'x' }, 'map/auth/refresh': { refreshToken: 'x' },
  };
  const last = ['mail/leave', 'map/session/close', 'map/disconnect', 'map/connect'];
  for (const method of [...Object.keys(defs).filter((m) => !last.includes(m)), ...last.slice(0, 2)]) {
    await ask(method, params[method] ?? (method.startsWith('mail/') ? { conversationId: c } : {}));
  }
});

test('who proves itself connects in steps, and takes its session up again', async () => {
  const { token } = await hub.call('POST', '/v1/agents', { agent_id: 'stepper' });
  await hub.call('PATCH', '/v1/settings', { 'map.require_credential': true });
  const open = async () => { const ws = new Checked(url); await new Promise((r) => { ws.onopen = r; }); return websocketStream(ws); };
  const a = new AgentConnection(await open(), { name: 'stepper' });
  const hello = await a.connectOnly({ agentId: 'stepper-1' });
  assert.equal(hello.authRequired.required, true);
  assert.equal((await a.authenticate({ method: 'bearer', token: 'wrong' })).success, false);
  assert.equal((await a.authenticate({ method: 'bearer', token })).success, true);
  assert.equal((await a.register()).id, 'stepper-1');
  assert.equal((await a.refreshAuth({ method: 'bearer', token })).success, true);
  assert.ok((await a.callExtension('map/auth/refresh', { refreshToken: token })).expiresAt > Date.now());
  const sub = await a.subscribe({ eventTypes: ['message_delivered'] });
  await a.sendToAgent('stepper-1', 'to myself');
  for await (const e of sub) { assert.equal(e.type, 'message_delivered'); break; }
  await a.unsubscribe(sub.id);
  await hub.call('PATCH', '/v1/settings', { 'map.require_credential': false });

  const first = new ClientConnection(await open(), { name: 'stepper-ui' });
  const one = await first.connect({ auth: { method: 'bearer', token } });
  assert.equal((await first.authenticate({ method: 'bearer', credential: token })).success, true);
  assert.equal((await first.refreshAuth({ method: 'bearer', credential: token })).success, true);
  assert.ok((await first.listSessions()).sessions.length >= 2);
  await first.sendToAgent('stepper-1', 'hello');
  const second = new ClientConnection(await open(), { name: 'stepper-ui' });
  const two = await second.connect({ auth: { method: 'bearer', token }, resumeToken: first.getResumeToken() });
  assert.equal(two.sessionId, one.sessionId);
  assert.equal(two.reconnected, true);
  assert.equal((await second.loadSession(two.sessionId)).restored, true);
  const events = [];
  for await (const e of second.replayAll({ limit: 20, filter: { eventTypes: ['agent_registered'] } })) events.push(e);
  assert.ok(events.some((e) => e.event.data.agentId === 'stepper-1'));
  const made = await second.createConversation({ subject: 'By a client' });
  await second.recordTurn({ conversationId: made.conversation.id, contentType: 'text', content: { text: 'first' } });
  const id = made.conversation.id;
  await second.inviteToConversation({ conversationId: id, participant: { id: 'stepper-1' } });
  const heard = new Promise((r) => a.onNotification('mail/turn.received', r));
  await second.recordTurn({ conversationId: id, contentType: 'text', content: { text: 'second' } });
  assert.equal((await heard).turn.content.text, 'second');
  assert.deepEqual((await second.callExtension('mail/presence', { conversationId: id })).participants.map((x) => x.presence), ['online', 'online']);
  await assert.rejects(second.reconnect(), refusal(-32600)); // it is connected: their own way back needs a new connection
  assert.equal((await a.joinConversation({ conversationId: id }).catch((e) => e)).code, 10004);
  assert.equal((await second.listTurns({ conversationId: id })).turns.length, 2);
  const thread = await second.createThread({ conversationId: id, rootTurnId: (await a.replayConversation({ conversationId: id })).turns[0].id });
  assert.equal((await second.listThreads({ conversationId: id })).threads[0].id, thread.thread.id);
  assert.ok((await second.getConversationSummary({ conversationId: id })).summary.includes('first'));
  await second.sendWithMail({ agent: 'stepper-1' }, { text: 'recorded' }, id);
  assert.equal((await second.getConversation(id, { stats: true })).stats.totalTurns, 3);
  assert.ok((await second.listConversations()).conversations.length >= 1);
  await a.leaveConversation(id);
  await second.closeConversation(id);
  assert.equal((await second.closeSession()).closed, true);
  await a.disconnect();
  await hub.call('DELETE', '/v1/agents/stepper');
  await assert.rejects(client('stepper-ui', { auth: { method: 'bearer', token } }), refusal(1006));
});

test('several agents and a client at once: nothing is lost, and everything is told in order', async () => {
  const ui = await client('watcher');
  const names = ['p', 'q', 'r', 's'].map((n) => `crowd-${n}`);
  const got = new Map(names.map((n) => [n, []]));
  const sub = await ui.subscribe({ eventTypes: ['message_sent'], scopes: ['crowd'] });
  const told = [];
  sub.on('event', (e) => told.push(e));
  const crowd = await Promise.all(names.map((n) => agent(n, { scopes: ['crowd'] })));
  crowd.forEach((a) => a.onMessage((m) => { got.get(a.agentId).push(m); }));
  await Promise.all(crowd.map(async (a, i) => { for (let n = 0; n < 25; n++) await a.sendToScope('crowd', { by: i, n }, { delivery: n % 2 ? 'acknowledged' : 'fire-and-forget' }); }));
  await until('all of it', () => [...got.values()].every((list) => list.length === 75) && told.length === 100);
  for (const list of got.values()) {
    for (let i = 0; i < 4; i++) {
      const mine = list.filter((m) => m.payload.by === i).map((m) => m.payload.n);
      assert.deepEqual(mine, mine.toSorted((x, y) => x - y), 'one sender is heard in its order');
    }
  }
  await Promise.all(crowd.map((a) => a.disconnect()));
  await ui.disconnect();
});

test('a client that says how far it has read gets everything, in portions', async () => {
  await hub.call('PATCH', '/v1/settings', { 'rate_limit.requests_per_minute': 100_000 });
  const ui = await client('reader-on', { capabilities: { streaming: { supportsAck: true } } });
  const a = await agent('chatter');
  const sub = await ui.subscribe({ eventTypes: ['message_sent'], fromAgents: ['chatter'] });
  assert.equal(sub.supportsAck, true);
  let n = 0;
  sub.on('event', () => { n++; if (n === 500) sub.ack(n); }); // and then no more, for a while
  const say = (many) => Promise.all(Array.from({ length: many }, (_, k) => a.send({ agent: 'chatter' }, k)));
  await say(600);
  await until('all of these', () => n === 600);
  await ui.listAgents(); // the word went before
  await say(1200);
  await until('as many as may be on their way', () => n >= 1500);
  await new Promise((r) => setTimeout(r, 300));
  assert.ok(n < 1800, `${n} came`);
  sub.ack(n);
  await until('the rest', () => n === 1800);
  await a.disconnect(); await ui.disconnect();
});

test('a lost connection comes back to its agent', async () => {
  const a = await agent('phoenix');
  await a.send({ agent: 'human' }, { text: 'Wait for it?' }, { expectsResponse: true, correlationId: 'w' });
  const it = await item('Wait for it?');
  await hub.down('SIGKILL');
  await hub.up();
  const c = await agent('sender');
  for (const delivery of ['fire-and-forget', 'acknowledged', 'guaranteed']) await c.send({ agent: 'phoenix' }, { text: delivery }, { delivery });
  await hub.down('SIGKILL');
  await hub.up();
  await hub.call('POST', `/v1/messages/${it.id}/resolve`, { resolution: 'answered', value: { text: 'now' } });
  const again = await AgentConnection.connect(url, { name: 'phoenix' });
  assert.equal(again.agentId, 'phoenix');
  const got = [];
  again.onMessage((m) => { got.push(m); });
  await until('all that waited', () => got.length === 4);
  assert.deepEqual(got.map((m) => m.payload.text), ['fire-and-forget', 'acknowledged', 'guaranteed', 'now']);
  assert.equal(got[3].meta.correlationId, 'w');
  await again.disconnect();
});

test('every method gave a result, and every call was made', () => {
  assert.deepEqual(Object.keys(defs).filter((m) => !answered.has(m)), []);
  const all = [AgentConnection, ClientConnection].flatMap((C) => calls(C).map(([name]) => `${C.name}.${name}`));
  assert.deepEqual(all.filter((name) => !used.has(name)), []);
});

test('frames fit the schema', () => assert.deepEqual(wrong, []));
