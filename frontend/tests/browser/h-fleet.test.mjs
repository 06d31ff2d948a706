// The fleet: sessions, who may write to an agent, its webhook, and messages made from templates.
import { assert, test, until } from './harness.mjs';

const session = (agent, about) => agent.hub.call('POST', '/v1/sessions', { ttl_seconds: 600, ...about }, { token: agent.token });
const policyOf = (hub, agent) => async () => (await hub.call('GET', '/v1/agents')).agents.find((a) => a.agent_id === agent.id).policy;

test('a live session is shown with its lease, and closing it says what that leads to', { hash: '#/agents/deploybot%2Fdev-team' }, async ({ hub, agent, page, p }) => {
  const s = (await session(agent, { label: 'night shift', kind: 'worker' })).session;
  await page.says('li.session', /night shift/);
  await page.says('li.session', /worker/);
  await page.says('li.session .lease', /(9|10) m.* left/);
  await hub.call('POST', '/v1/directives', { to: `${agent.id}#${s.session_id ?? s.id}`, title: 'For the night' });
  await page.says('li.session', /1 message waits for it/);
  await agent.ask('May I?', { agent: { id: agent.id, run_id: '1', runtime: 'cli', session: s.id } });
  await page.says('li.session', /waits for 1 answer/);
  await p.getByRole('button', { name: /^Close the session night shift \S+…$/ }).click();
  await page.says('dialog', /not acknowledged bounces, even if it was collected/);
  await page.says('dialog', /Asks and tasks that were acknowledged stay open/);
  await page.says('dialog', /cannot open a new session until you resume it/);
  await page.keys('Enter'); // the focus is on Cancel
  await until('the dialog to go', () => p.locator('dialog').count(), (n) => n === 0);
  assert.equal(await p.locator('li.session').count(), 1);
  await p.getByRole('button', { name: /^Close the session night shift \S+…$/ }).click();
  await p.locator('dialog button.danger').click();
  await until('it to end', () => p.locator('li.session').count(), (n) => n === 0);
  await page.says('main', /Stopped by you/);
  await page.says('main', /bounced|never reached/i);
  await page.says('summary', /1 session ended lately/);
});

test('a message to a session with a long name keeps to its line', { hash: '#/agents/deploybot%2Fdev-team' }, async ({ hub, agent, page, p }) => {
  const s = (await session(agent, { label: 'nightly integration run for issue 612 in the web-app repository on build-07' })).session;
  const d = await hub.call('POST', '/v1/directives', { to: `${agent.id}#${s.id}`, title: 'Look at the log' });
  await agent.hub.call('GET', `/v1/inbox?session=${s.id}`, undefined, { token: agent.token });
  await agent.hub.call('POST', `/v1/inbox/ack?session=${s.id}`, { ids: [d.id], note: 'I will look at it as soon as the run that goes on is through, and tell you' }, { token: agent.token });
  await page.says('li.directive', /Acknowledged/);
  for (const width of [1280, 900, 480]) {
    await p.setViewportSize({ width, height: 800 });
    await page.settled();
    const line = await p.locator('li.directive .to').evaluate((to) => ({ over: to.scrollHeight - to.clientHeight, word: to.querySelector('.word').getClientRects()[0].height, wide: document.documentElement.scrollWidth - innerWidth }));
    assert.ok(line.over <= 1 && line.word <= 18 && line.wide <= 0, `${width}: ${JSON.stringify(line)}`);
  }
});

test('a session that ended before it is closed is not called closed, and its agent is stopped', { hash: '#/agents/deploybot%2Fdev-team' }, async ({ hub, agent, page, p }) => {
  const s = (await session(agent, { label: 'short' })).session;
  await p.getByRole('button', { name: /^Close the session short \S+…$/ }).click();
  await page.says('dialog', /Close the session/);
  await hub.call('DELETE', `/v1/sessions/${s.id}`, undefined, { token: agent.token });
  await p.locator('dialog button.danger').click();
  await page.says('.toast', /It had been closed before\. The agent is stopped now/);
  await page.says('main', /Stopped by you/);
});

test('who may write to an agent is narrowed down and opened again', { hash: '#/agents/deploybot%2Fdev-team', before: ({ hub }) => hub.agent('friend') }, async ({ hub, agent, p }) => {
  const policy = policyOf(hub, agent);
  const group = p.getByRole('radiogroup', { name: 'Which agents may write to it' });
  await group.getByText('Only these').click();
  await until('nobody to be allowed', policy, (x) => Array.isArray(x.allowed_senders) && x.allowed_senders.length === 0);
  const add = p.getByLabel('Add an agent that may write to it');
  await add.fill('friend');
  await add.press('Enter');
  await until('the friend', policy, (x) => x.allowed_senders.join() === 'friend');
  await p.getByRole('button', { name: 'Remove friend' }).click();
  await until('the friend to go', policy, (x) => x.allowed_senders.length === 0);
  await group.getByText('Anyone').click();
  await until('anyone', policy, (x) => x.allowed_senders === null);
  await until('the list to go', () => add.count(), (n) => n === 0);
});

test('a webhook is set and removed; a bad address is said beside it', { hash: '#/agents/deploybot%2Fdev-team', refusals: [422] }, async ({ hub, agent, page, p }) => {
  const policy = policyOf(hub, agent);
  const field = p.getByLabel('Push my messages to');
  await field.fill('ftp://nowhere');
  await field.press('Enter');
  await page.says('main [role=alert]', /./);
  assert.equal((await policy()).inbound_webhook, null);
  await field.fill('https://hooks.example.org/deskbell');
  await field.press('Enter');
  await until('the webhook', policy, (x) => x.inbound_webhook === 'https://hooks.example.org/deskbell');
  await until('the page to know', () => p.getByRole('button', { name: 'Save', exact: true }).last().isDisabled());
  await field.fill('');
  await p.getByRole('button', { name: 'Remove', exact: true }).click();
  await until('it to go', policy, (x) => x.inbound_webhook === null);
});

test('a message is made from a template, kept as one, and found again', async ({ agent, page, p }) => {
  await page.keys('g', 'f', 'n');
  const dialog = p.locator('dialog');
  await dialog.getByRole('button', { name: 'Report status' }).click();
  const title = dialog.getByLabel('Title');
  assert.equal(await title.inputValue(), 'Report status');
  await title.fill('Report in short');
  await dialog.getByRole('button', { name: 'Keep as a template' }).click();
  await dialog.getByRole('button', { name: 'Report in short', exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Hold all work' }).click();
  assert.equal(await title.inputValue(), 'Hold all work');
  await dialog.getByRole('button', { name: 'Put back what I wrote' }).click();
  assert.equal(await title.inputValue(), 'Report in short');
  await page.keys('Escape');
  await page.at('#/fleet');
  await page.keys('n');
  await dialog.getByRole('button', { name: 'Report in short', exact: true }).click();
  assert.equal(await title.inputValue(), 'Report in short');
  const to = dialog.getByRole('combobox');
  await to.fill(agent.id.slice(0, 4));
  await page.keys('ArrowDown', 'Enter');
  await p.keyboard.press('Control+Enter');
  await until('the message', () => agent.drain(), (entries) => entries.includes('Report in short'));
  await dialog.getByRole('button', { name: 'Write another' }).click();
  await dialog.getByRole('button', { name: 'Forget the template Report in short' }).click();
  await until('it to go', () => dialog.getByRole('button', { name: 'Report in short', exact: true }).count(), (n) => n === 0);
});

test('leaving the To field takes a whole name, and keeps a half one to be mended', async ({ hub, agent, page, p }) => {
  await hub.agent('second');
  await page.keys('g', 'f', 'n');
  const to = p.locator('dialog').getByRole('combobox');
  await to.fill('second');
  await page.keys('Tab');
  await until('the name', () => to.inputValue(), (v) => v === 'second');
  await to.fill('nobody-of-that-name');
  await page.keys('Tab');
  assert.equal(await to.inputValue(), 'nobody-of-that-name');
  await p.locator('dialog').getByLabel('Title').fill('x');
  await p.keyboard.press('Control+Enter');
  await page.says('dialog', /Choose who it is for/);
  assert.equal(await agent.drain().then((d) => d.includes('"title":"x"')), false);
});

test('an agent’s page says how much it asks, how fast it is answered, and how much more it may send', { settings: { 'rate_limit.requests_per_minute': 5 } }, async ({ hub, agent, page }) => {
  const ids = [await agent.ask('One'), await agent.ask('Two'), await agent.ask('Three')];
  await agent.notify('Told');
  await agent.cancel(ids[1]);
  await hub.call('POST', `/api/items/${ids[0]}/resolve`, { resolution: 'answered', value: 'ship' });
  await page.at(`#/agents/${encodeURIComponent(agent.id)}`);
  await page.says('main tbody tr', /hour\s+3\s+0\s+1\s+1\s+0\s+1\s+\d/);
  await page.says('main tbody tr', /7 days\s+3\s+0\s+1\s+1\s+0\s+1/);
  await page.says('main li', /Messages to you: 5 a minute, 1 is left now/);
  await page.says('main li', /Messages to other agents: 5 a minute, all of them are left/);
  await page.says('main li', /may be open at once: 1 is/);
});

test('an answer that a stream may have shown waits to be collected or confirmed', async ({ agent, page }) => {
  const s = (await session(agent, { label: 'streams' })).session;
  const id = await agent.ask('May I?', { agent: { id: agent.id, run_id: '1', runtime: 'cli', session: s.id } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await until('the answer', () => agent.hub.call('GET', `/api/items/${id}`), (it) => it.state === 'answered');
  await page.at(`#/done/${id}`);
  await page.says('[data-item-pane]', /Waits for the agent to collect it, or to confirm that it has it/);
});
