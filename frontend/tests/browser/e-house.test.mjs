import { assert, test, until } from './harness.mjs';

test('an agent is added, rotated and revoked', { hash: '#/agents', refusals: [401, 409, 422] }, async ({ hub, page, p }) => {
  await p.click('text=Add an agent');
  await p.fill('input[aria-label="Name of the agent"]', 'web#1');
  await p.keyboard.press('Enter');
  await page.says('[role=alert]', /A name cannot contain "#"/);
  await p.fill('input[aria-label="Name of the agent"]', 'deploybot/dev-team');
  await p.keyboard.press('Enter');
  await page.says('[role=alert]', /./); // there is one by that name
  await p.fill('input[aria-label="Name of the agent"]', 'web/agent');
  await p.keyboard.press('Enter');
  await page.says('main', /Credentials of web\/agent/);
  const first = await p.locator('.box dd pre').first().innerText();
  assert.match(first, /^\S{20,}$/);
  await p.click('button[aria-label="Copy the token"]');
  await until('the token on the clipboard', () => p.evaluate(() => navigator.clipboard.readText()), (text) => text === first);
  const known = (token) => fetch(`${hub.url}/v1/messages/msg_none`, { headers: { Authorization: `Bearer ${token}` } }).then((r) => r.status !== 401);
  assert.equal(await known(first), true);
  await p.click('text=I have them');
  assert.ok(!(await p.content()).includes(first), 'the token is still in the page');
  await p.click('.head:has-text("web/agent")');
  await page.says('h1', /^web\/agent$/);
  await p.click('text=Rotate…');
  await page.says('dialog', /new signing secret/);
  await p.click('dialog button.primary');
  await page.says('main', /Credentials of web\/agent/);
  const second = await p.locator('.box dd pre').first().innerText();
  assert.notEqual(second, first);
  assert.deepEqual([await known(first), await known(second)], [true, true], 'the old one works for ten more minutes');
  await p.click('text=Revoke…');
  await page.keys('Enter'); // the cautious button has the focus
  assert.equal(await p.locator('dialog').count(), 0);
  assert.equal(await known(second), true);
  await p.click('text=Revoke…');
  await p.click('dialog button.danger');
  await page.says('main', /revoked/);
  assert.deepEqual([await known(first), await known(second)], [false, false]);
});

test('pairing: the code is compared and approved, or refused', async ({ hub, page, p }) => {
  const pair = (agent_id, note) => hub.call('POST', '/v1/pairings', { agent_id, note }, { token: '' });
  const asked = await pair('new/agent', 'on this machine, <b>really</b> \u202Egnp.exe');
  await page.says('nav', /Fleet\s*1/);
  await page.keys('g', 'a');
  await page.says('.card', new RegExp(asked.code));
  await page.says('.card', /<b>really<\/b>/);
  await page.says('.card', /U\+202E|right-to-left|RLO/i);
  await p.click('.card button:has-text("Approve")');
  const got = await until('the credentials', () => hub.call('GET', `/v1/pairings/${asked.id}`, undefined, { token: asked.secret }), (x) => x.credentials);
  assert.equal(got.credentials.agent_id, 'new/agent');
  await until('it to leave', () => p.locator(`text=${asked.code}`).count(), (n) => n === 0);
  await page.says('.head', /new\/agent/);
  const other = await pair('other/agent', '');
  await page.says('.card', new RegExp(other.code)); // while the page is open
  await p.click('.card button:has-text("Refuse")');
  assert.equal((await until('the refusal', () => hub.call('GET', `/v1/pairings/${other.id}`, undefined, { token: other.secret }), (x) => x.state !== 'pending')).state, 'refused');
});

test("an agent's policy: answering what names nobody, and hosts", { hash: '#/agents/deploybot%2Fdev-team', refusals: [422] }, async ({ hub, agent, page, p }) => {
  const policy = async () => (await hub.call('GET', '/v1/agents')).agents.find((a) => a.agent_id === agent.id).policy;
  const unlisted = p.locator('[role=switch][aria-label="Let me answer what names nobody"]');
  await unlisted.click();
  await until('the switch', policy, (x) => x.operator_resolves_unlisted === true);
  await until('the switch', () => unlisted.getAttribute('aria-checked'), (v) => v === 'true');
  const host = p.locator('input[aria-label="Add a host"]');
  await host.fill('https://hooks.example.org/x');
  await host.press('Enter');
  await page.says('main [role=alert]', /only the host/);
  await host.fill('hooks.example.org:8443');
  await host.press('Enter');
  await until('the host', policy, (x) => x.callback_hosts.includes('hooks.example.org:8443'));
  await p.locator('button[aria-label="Remove hooks.example.org:8443"]').click();
  await until('it to go', policy, (x) => x.callback_hosts.length === 0);
});

test('writing to an agent, and seeing how far it got', async ({ agent, page, p }) => {
  await page.keys('g', 'f', 'n');
  await page.says('dialog', /./);
  const dialog = p.locator('dialog');
  const to = dialog.locator('input').first();
  if (!(await to.inputValue().catch(() => ''))) { await to.fill(agent.id); await to.press('Enter'); }
  await dialog.locator('input:not([type=radio]):not([type=checkbox])').last().waitFor();
  await dialog.getByLabel(/title|subject/i).fill('Please stop the deploy');
  await p.keyboard.press('Control+Enter');
  await until('the message', () => agent.drain(), (entries) => entries.includes('Please stop the deploy'));
  await page.says('dialog', /It reached the agent/);
  await page.keys('Escape');
  await page.keys('g', 'm');
  await page.says('main', /Please stop the deploy/);
  await page.says('main', /delivered/i);
});

test('an agent is stopped and resumed', { hash: '#/agents/deploybot%2Fdev-team' }, async ({ hub, agent, page, p }) => {
  await p.click('text=Stop…');
  await page.says('dialog', /cannot open a new session until you resume it/);
  await p.click('dialog button.danger');
  await page.says('main', /Stopped by you/);
  const stopped = async () => (await hub.call('GET', '/api/fleet')).agents.find((a) => a.agent_id === agent.id).stopped;
  assert.ok(await stopped());
  await p.click('button:has-text("Resume")');
  await until('the resuming', stopped, (x) => !x);
  await until('the words to go', () => p.locator('text=Stopped by you').count(), (n) => n === 0);
});

test('settings go there and back, errors beside them', { hash: '#/settings', refusals: [422] }, async ({ hub, page, p }) => {
  const get = () => hub.call('GET', '/v1/settings');
  const row = (label) => p.locator(`.row:has(.label:text-is("${label}"))`);
  const keep = row('Keep items').locator('input');
  await keep.fill('0');
  await keep.press('Enter');
  await until('the refusal', () => row('Keep items').innerText(), (t) => /least|between|1/.test(t) && t.length > 60);
  assert.equal(await keep.getAttribute('aria-invalid'), 'true');
  assert.equal((await get()).retention_days, 30);
  await keep.fill('many');
  await keep.press('Enter');
  await page.says('.row', /Must be a whole number/);
  await keep.fill('45');
  await keep.press('Enter');
  await until('the change', get, (s) => s.retention_days === 45);
  await until('the error to go', () => keep.getAttribute('aria-invalid'), (v) => v === null);
  await row('Messages between agents').locator('[role=switch]').click();
  await until('the change', get, (s) => s['inter_agent.enabled'] === true);
  const stream = row('Longest stream').locator('input');
  await stream.fill('3600'); // longer than an agent counts as online: a rule of the protocol
  await stream.press('Enter');
  await until('the refusal', () => row('Longest stream').locator('[role=alert]').count());
  assert.equal((await get())['inbound.stream_max_hold_seconds'], 60);
  await hub.call('PATCH', '/v1/settings', { retention_days: 7 }); // from elsewhere
  await until('the new value', () => keep.inputValue(), (v) => v === '7');
  const name = row('Your name').locator('input');
  await name.fill('nobody:else ');
  await name.press('Enter');
  await until('the refusal', () => row('Your name').locator('[role=alert]').count());
  await name.fill('ada');
  await name.press('Enter');
  await until('the change', get, (s) => s['operator.id'] === 'ada');
  assert.equal((await hub.call('GET', '/.well-known/ma2h')).operator, 'human:ada');
});

test('the page says where the hub is and what is relaxed', { hash: '#/settings' }, async ({ hub, page }) => {
  await page.says('main', new RegExp(hub.url));
  await page.says('main', /approved callbacks may reach this machine/);
  await page.says('main', /Notifications\s+not available/);
});

test('appearance is kept: theme, contrast, rows', { hash: '#/settings' }, async ({ page, p }) => {
  const look = () => p.evaluate(() => [document.documentElement.dataset.scheme, document.documentElement.dataset.density, document.documentElement.hasAttribute('data-contrast')]);
  assert.deepEqual(await look(), ['light', 'comfortable', false]);
  await p.click('label:text-is("Dark")');
  await p.click('label:text-is("Compact")');
  await p.click('[role=switch][aria-label="High contrast"]');
  assert.deepEqual(await look(), ['dark', 'compact', true]);
  await p.reload();
  await page.live();
  assert.deepEqual(await look(), ['dark', 'compact', true]);
  await p.click('label:text-is("System")');
  await p.emulateMedia({ colorScheme: 'dark' });
  await until('dark', look, (l) => l[0] === 'dark');
  await p.emulateMedia({ colorScheme: 'light' });
  await until('light', look, (l) => l[0] === 'light');
});

test('the hub restarts while the page is open', { refusals: ['offline'] }, async ({ hub, agent, page, p }) => {
  const [a, b] = [await agent.ask('Before', { request: { permissions: { allow_edit: true } } }), await agent.ask('Also before')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('w');
  await p.keyboard.type('half typed');
  await hub.down();
  await page.says('nav', /not reachable/);
  await page.says('nav', /trying/);
  await page.says('[data-decision]', /The hub does not answer. Nothing can be decided/);
  await page.keys('Control+Enter', 'Escape', '1', 'd', 'd');
  assert.deepEqual(await page.ids(), [a, b], 'what was there is gone');
  await hub.up();
  const late = await agent.ask('After');
  await until('the late one', () => page.ids(), (ids) => ids.includes(late), 30_000);
  await page.says('nav', /live/);
  assert.equal((await agent.answer(a)).status, 'open');
  assert.equal(await page.selected(), a);
  await page.keys('Escape', 'w');
  assert.equal(await p.inputValue('[data-decision] textarea'), 'half typed');
  await p.keyboard.press('Control+Enter');
  assert.equal((await until('the answer', () => agent.answer(a), (x) => x.status === 'answered')).value, 'half typed');
});

test('without a hub no list shows what is in another one', { refusals: ['offline'] }, async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Still there?');
  await page.row(id).waitFor();
  await hub.down();
  await page.says('nav', /not reachable/);
  await page.keys('g', 'd');
  await page.says('[data-pane=list] [role=alert]', /The hub does not answer\. What is here cannot be shown\./);
  assert.equal(await p.locator('[data-pane=list] h1').innerText(), 'Done');
  assert.equal(await page.row(id).count(), 0, 'an open question stands under Done');
  assert.equal(await p.locator('[data-pane=list] header .num').count(), 0, 'there is a number of what is not known');
  await page.keys('g', 'n');
  await hub.up();
  await page.row(id).waitFor();
  assert.equal(await p.locator('[data-pane=list] [role=alert]').count(), 0);
});

test('a hub that is killed comes back with everything', { refusals: ['offline'] }, async ({ hub, agent, page }) => {
  const ids = await agent.many(20, (i) => [`Kept ${i}`]);
  await until('all', () => page.ids(), (got) => got.length === 20);
  const wait = agent.get(ids[0], '?wait=20').catch(() => 'cut off');
  await hub.down('SIGKILL');
  await page.says('nav', /not reachable/);
  await hub.up();
  await page.says('nav', /live/);
  assert.equal(await wait, 'cut off');
  await page.open(ids[0]);
  await page.keys('3');
  assert.equal((await until('the answer', () => agent.answer(ids[0]), (x) => x.status === 'answered')).value, 'abort');
});

test('two pages of one person agree', async ({ hub, agent, page, browser }) => {
  const { Page } = await import('./harness.mjs');
  const other = await Page.fresh(hub, browser);
  try {
    await other.signIn();
    const a = await agent.ask('Which page?');
    await page.row(a).waitFor();
    await other.row(a).waitFor();
    await other.open(a);
    await page.open(a);
    await page.keys('1');
    await other.says('[data-decision]', /Answered: Ship to prod now/);
    await until('it to leave both', () => other.ids(), (ids) => ids.length === 0);
    assert.deepEqual(await other.complaints(), []);
  } finally {
    await other.context.close();
  }
});

test('a link put into the address of the open page is followed', async ({ agent, page, p }) => {
  const [a, b] = [await agent.ask('A'), await agent.ask('B')];
  await page.row(b).waitFor();
  await page.open(a);
  await p.evaluate((x) => { location.hash = `#/needs/${x}`; }, b);
  await page.shown(b);
  await p.evaluate(() => { location.hash = '#/settings'; });
  await page.says('h1', /^Settings$/);
});
