import { assert, test, until } from './harness.mjs';

/** An agent of the network that lives in the page: it has the page's own origin, so the hub takes it. */
async function agent(p, name, more = {}) {
  await p.evaluate(async ({ name, more }) => {
    const ws = new WebSocket(`${location.origin.replace('http', 'ws')}/map`);
    const waiting = new Map();
    const agents = (window.agents ??= {});
    const a = (agents[name] = { got: [], n: 0 });
    ws.onmessage = (e) => {
      const f = JSON.parse(e.data);
      if (f.method) a.got.push(f);
      else waiting.get(f.id)?.(f);
    };
    await new Promise((r) => { ws.onopen = r; });
    a.ask = (method, params) => new Promise((r) => { const id = ++a.n; waiting.set(id, r); ws.send(JSON.stringify({ jsonrpc: '2.0', id, method, params })); });
    await a.ask('map/connect', { protocolVersion: 1, participantType: 'agent', name });
    await a.ask('map/agents/register', { name, ...more });
  }, { name, more });
  return {
    ask: (method, params) => p.evaluate(({ name, method, params }) => window.agents[name].ask(method, params), { name, method, params }).then((f) => f.result),
    got: () => p.evaluate((name) => window.agents[name].got, name),
  };
}

test('a conversation is read, answered and ended, and a private word stays private', async ({ page, p }) => {
  const a = await agent(p, 'planner', { role: 'lead', scopes: ['team'] });
  const b = await agent(p, 'tester', { parent: 'planner' });
  const { conversation } = await a.ask('mail/create', { subject: 'Release <b>plan</b>', initialParticipants: [{ id: 'tester' }], initialTurn: { contentType: 'text', content: { text: 'Ready <script>alert(1)</script> **now**' } } });
  await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text: 'between us agents' }, visibility: { type: 'participants', ids: ['tester'] } });
  await page.keys('g', 'v');
  await page.says('main', /1 with something new/);
  await page.says('main [data-stop]', /Release <b>plan<\/b>/);
  await p.locator('main [data-stop]').first().click();
  await page.says('main', /Ready/);
  assert.equal(await p.locator('main .turns li').count(), 1, 'what is not for the person is not shown');
  assert.equal(await p.locator('main .turns strong').innerText(), 'now');
  await p.fill('main textarea', 'Go ahead');
  await p.locator('main textarea').press('Control+Enter');
  await until('both hear of it', async () => [await a.got(), await b.got()].every((got) => got.some((f) => f.method === 'map/message' && f.params.message.from === 'human' && f.params.message.payload.text === 'Go ahead')), (ok) => ok);
  await until('the field is empty', () => p.inputValue('main textarea'), (v) => v === '');
  await p.selectOption('main select', 'planner');
  await p.fill('main textarea', 'Only you');
  await p.click('main button:has-text("Send")');
  await page.says('main', /not for everybody/);
  const { turns } = await b.ask('mail/turns/list', { conversationId: conversation.id });
  assert.ok(!JSON.stringify(turns).includes('Only you'));
  await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text: 'Understood' } });
  await page.says('main', /Understood/);
  await p.click('main button:has-text("End it")');
  await page.says('main', /This conversation has ended/);
  await page.keys('Escape');
  await page.says('h1', /Conversations/);
  await page.says('main', /nothing new/);
});

test('the fleet shows the network and its scopes', async ({ page, p }) => {
  await agent(p, 'planner', { role: 'lead', scopes: ['team'] });
  await agent(p, 'tester', { parent: 'planner' });
  await page.keys('g', 'f');
  await page.says('main', /planner\s*lead · registered · connected/);
  await page.says('main', /Scopes\s*team\s*1 agent: planner/);
  await p.click('main section button:has-text("tester")');
  await page.says('h1', /tester/);
});
