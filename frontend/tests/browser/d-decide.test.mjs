import { receiver } from './hub.mjs';
import { assert, test, until } from './harness.mjs';

const answered = (agent, id) => until('the answer', () => agent.answer(id), (a) => a.status === 'answered');
const status = (agent, id) => agent.answer(id).then((a) => a.status);
const minutes = (n) => new Date(Date.now() + n * 60_000).toISOString();
const seconds = (n) => new Date(Date.now() + n * 1000).toISOString();

const form = {
  mode: 'input',
  schema: {
    type: 'object', required: ['host', 'port', 'password', 'mode'],
    properties: {
      host: { type: 'string', title: 'Host', format: 'hostname', description: 'Where it runs' },
      port: { type: 'integer', title: 'Port', minimum: 1, maximum: 65535, default: 5432 },
      password: { type: 'string', title: 'Password', minLength: 4, 'x-ma2h-sensitive': true },
      mode: { type: 'string', title: 'Mode', enum: ['full', 'incremental'] },
      tls: { type: 'boolean', title: 'TLS', default: true },
      tables: { type: 'array', title: 'Tables', items: { type: 'string' } },
      code: { type: 'string', title: 'Code', pattern: '^[A-Z]{3}$' },
    },
  },
};
const field = (p, key) => p.locator(`[data-decision] [id$="-${key}"]`);

test('a form says what is wrong beside the field, before and after sending', { refusals: [422] }, async ({ agent, page, p }) => {
  const id = await agent.ask('Connection?', { request: form });
  await page.row(id).waitFor();
  await page.open(id);
  assert.equal(await field(p, 'port').inputValue(), '5432');
  await p.click('text=Send the answer');
  await page.says('[data-decision]', /This is needed/);
  assert.equal(await status(agent, id), 'open');
  assert.equal(await field(p, 'host').getAttribute('aria-invalid'), 'true');
  await p.waitForFunction(() => document.activeElement.id.endsWith('-host')); // the first wrong field takes the focus
  await field(p, 'host').fill('-not-a-host-'); // only the hub knows what a hostname is
  await field(p, 'port').fill('99999');
  await field(p, 'password').fill('hunter2');
  await field(p, 'tables').fill('users\n orders \n\n');
  await p.click('[data-decision] label:has-text("incremental")');
  await p.keyboard.press('Control+Enter');
  await page.says('[data-decision]', /Not above 65535/);
  await field(p, 'port').fill('5433');
  await p.keyboard.press('Control+Enter');
  const said = p.locator('[data-decision] [id$="-host-problem"]');
  await said.waitFor();
  assert.equal(await field(p, 'host').getAttribute('aria-invalid'), 'true');
  assert.ok((await field(p, 'host').getAttribute('aria-describedby')).includes(await said.getAttribute('id')));
  assert.equal(await status(agent, id), 'open');
  assert.equal(await field(p, 'password').inputValue(), 'hunter2', 'what was typed is lost');
  await field(p, 'host').fill('db.example.org');
  await page.settled();
  await p.keyboard.press('Control+Enter');
  const a = await answered(agent, id);
  assert.deepEqual(a.value, { host: 'db.example.org', port: 5433, password: 'hunter2', mode: 'incremental', tls: true, tables: ['users', 'orders'] });
});

test('what the hub alone refuses lands on its field: a pattern', { refusals: [422] }, async ({ agent, page, p }) => {
  // A pattern from an agent is not run in the page: it could stop it.
  const evil = { type: 'object', required: ['x'], properties: { x: { type: 'string', title: 'X', pattern: '^(a+)+$' } } };
  const id = await agent.ask('X?', { request: { mode: 'input', schema: evil } });
  await page.row(id).waitFor();
  await page.open(id);
  await field(p, 'x').fill(`${'a'.repeat(40)}!`);
  const before = await page.worked();
  await p.keyboard.press('Control+Enter');
  await p.locator('[data-decision] [id$="-x-problem"]').waitFor();
  const took = await page.worked() - before;
  assert.ok(took > 0 && took < 2000, `the page stood still for ${took} ms`);
  await field(p, 'x').fill('aaaa');
  await p.keyboard.press('Control+Enter');
  assert.deepEqual((await answered(agent, id)).value, { x: 'aaaa' });
});

test('a secret is masked, dies with the form, and is in no storage', async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Connection?', { request: form, sensitive: true });
  const other = await agent.ask('Other');
  await page.row(other).waitFor();
  await page.open(id);
  const secret = field(p, 'password');
  assert.equal(await secret.getAttribute('type'), 'password');
  assert.equal(await secret.getAttribute('autocomplete'), 'off');
  await secret.fill('hunter2-secret');
  await field(p, 'host').fill('db.example.org');
  await p.click('[data-decision] button[aria-label="Show"]');
  assert.equal(await secret.getAttribute('type'), 'text');
  await p.click('[data-decision] button[aria-label="Hide"]');
  await page.open(other);
  await page.open(id);
  assert.deepEqual([await secret.inputValue(), await field(p, 'host').inputValue()], ['', 'db.example.org']);
  await secret.fill('hunter2-secret');
  await p.click('[data-decision] label:has-text("full")');
  await p.click('text=Send the answer');
  assert.equal((await answered(agent, id)).value.password, 'hunter2-secret');
  await page.at(`#/done/${id}`);
  await page.says('[data-decision]', /The answer is sensitive/);
  assert.ok(!(await p.content()).includes('hunter2-secret'), 'the receipt shows it');
  await p.click('[data-decision] button:has-text("Show it")');
  assert.ok(!(await p.locator('[data-decision]').innerText()).includes('hunter2-secret'), 'the field is a secret all the same');
  const kept = await p.evaluate(async () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, await indexedDB.databases(), await caches.keys(), location.href, document.title]));
  assert.ok(!kept.includes('hunter2'), kept);
  assert.ok(!hub.log.includes('hunter2'), 'it is in the log');
});

test('every kind of field: choices, lists, JSON, dates, numbers, long text', async ({ agent, page, p }) => {
  const many = Array.from({ length: 7 }, (_, i) => `region-${i}`);
  const id = await agent.ask('All kinds?', { request: { mode: 'input', schema: { type: 'object', required: ['region', 'ratio'], properties: {
    region: { type: 'string', enum: many }, ratio: { type: 'number', exclusiveMinimum: 0, maximum: 1 }, when: { type: 'string', format: 'date' },
    notes: { type: 'string', maxLength: 400 }, sure: { type: 'boolean' }, mail: { type: 'string', format: 'email' },
  } } } });
  await page.row(id).waitFor();
  await page.open(id);
  // what is not chosen looks it, whatever the platform draws
  const look = (which) => p.locator(which).first().evaluate((el) => { const s = getComputedStyle(el); return [s.appearance, s.backgroundColor, getComputedStyle(el, '::before').visibility]; });
  const open = await look('[data-decision] input[type=radio]');
  assert.deepEqual([open[0], open[2], (await look('[data-decision] select'))[0]], ['none', 'hidden', 'none']);
  await p.locator('[data-decision] input[type=radio]').first().check();
  const chosen = await look('[data-decision] input[type=radio]');
  assert.equal(chosen[2], 'visible');
  assert.notEqual(chosen[1], open[1]);
  await p.emulateMedia({ forcedColors: 'active' });
  assert.notEqual((await look('[data-decision] input[type=radio]'))[0], 'none', 'forced colours are the platform’s');
  await p.emulateMedia({ forcedColors: 'none' });
  await field(p, 'region').selectOption({ label: 'region-4' });
  await field(p, 'ratio').fill('0');
  await field(p, 'when').fill('31.1.2026');
  await field(p, 'mail').fill('nobody');
  await p.click('text=Send the answer');
  await page.says('[data-decision]', /More than 0/);
  await page.says('[data-decision]', /Write a date such as/);
  await page.says('[data-decision]', /Write an address such as/);
  await field(p, 'ratio').fill('.25');
  await field(p, 'when').fill('2026-01-31');
  await field(p, 'mail').fill('a@example.org');
  await field(p, 'notes').fill('two\nlines');
  await p.getByRole('radio', { name: 'No', exact: true }).check();
  await p.click('text=Send the answer');
  assert.deepEqual((await answered(agent, id)).value, { region: 'region-4', ratio: 0.25, when: '2026-01-31', notes: 'two\nlines', sure: false, mail: 'a@example.org' });
});

test('w and Enter lead into a form, which says what is below its edge', async ({ agent, page, p }) => {
  const properties = Object.fromEntries(Array.from({ length: 14 }, (_, i) => [`f${i}`, { type: 'string', title: `Field ${i}`, ...(i === 0 ? { default: 'set' } : {}) }]));
  const id = await agent.ask('Long form?', { request: { mode: 'input', schema: { type: 'object', properties } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /\d+ more fields/);
  const on = () => p.evaluate(() => document.activeElement?.id ?? '');
  await page.keys('w');
  assert.equal(await on(), `${id}-f1`);
  await page.keys('Escape');
  await until('the reading pane', () => p.evaluate(() => document.activeElement?.closest('[data-reading]') !== null), (x) => x);
  await page.keys('Enter');
  assert.equal(await on(), `${id}-f1`);
});

test('confirm: approve and deny', async ({ agent, page }) => {
  const [a, b] = [await agent.ask('A?', { request: { mode: 'confirm' } }), await agent.ask('B?', { request: { mode: 'confirm' } })];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('1');
  assert.equal((await answered(agent, a)).value, 'approve');
  await page.shown(b);
  await page.keys('2');
  assert.equal((await answered(agent, b)).value, 'deny');
});

test('a task is completed with its checklist, or all the same, or dismissed', async ({ agent, page, p }) => {
  const list = [{ text: 'Public half published' }, { text: 'Old key revoked', done: false }, { text: 'Logged', done: true }];
  const [a, b, c] = [await agent.task('A', { checklist: list, verification: 'Look **here**.' }), await agent.task('B', { checklist: list }), await agent.task('C')];
  await page.row(c).waitFor();
  await page.says('.row', /1\/3/);
  await page.open(a);
  await page.says('[data-reading]', /How to check it/);
  await p.click('text=Public half published');
  await p.click('text=Old key revoked');
  await page.says('[data-decision]', /3 of 3 done/);
  await page.keys('1');
  await page.says('[data-decision]', /2 of 3 done/);
  await page.keys('1', 'Control+Enter');
  const done = await until('it', () => agent.answer(a), (x) => x.status === 'completed');
  assert.deepEqual(done.checklist.map((x) => x.done), [true, true, true]);
  await page.shown(b);
  await page.keys('Control+Enter');
  await page.says('[data-decision]', /2 of 3 not ticked/);
  assert.equal(await status(agent, b), 'open');
  await page.keys('Control+Enter');
  const some = await until('it', () => agent.answer(b), (x) => x.status === 'completed');
  assert.deepEqual(some.checklist.map((x) => [x.text, x.done]), [['Public half published', false], ['Old key revoked', false], ['Logged', true]]);
  await page.shown(c);
  await page.keys('d');
  await p.fill('[data-decision] textarea', 'not today');
  await p.click('text=Dismiss the task');
  const gone = await until('it', () => agent.answer(c), (x) => x.status === 'dismissed');
  assert.equal(gone.comment, 'not today');
});

test('only what is permitted is offered', async ({ agent, page }) => {
  const closed = await agent.ask('No way out', { request: { permissions: { allow_ignore: false, allow_edit: false } } });
  const mute = await agent.ask('Say nothing', { request: { permissions: { allow_respond: false } } });
  await page.row(mute).waitFor();
  await page.open(closed);
  await page.keys('d', 'd', 'w');
  assert.equal(await status(agent, closed), 'open');
  const text = await page.decision().innerText();
  assert.ok(!/Decline|Write another/.test(text), text);
  await page.open(mute);
  await page.says('[data-decision]', /takes no answer/);
  await page.keys('1', '2');
  assert.equal(await status(agent, mute), 'open');
  await page.keys('d', 'Control+Enter');
  await until('the decline', () => status(agent, mute), (s) => s === 'declined');
});

test('who loses a race sees the real outcome', { refusals: [409] }, async ({ hub, agent, page, p }) => {
  const [a, b] = [await agent.ask('Race?'), await agent.ask('Next?')];
  await page.row(b).waitFor();
  await page.open(a);
  // The page does not hear of it in time.
  await p.route('**/api/items/*/resolve', async (route) => {
    await hub.call('POST', `/v1/messages/${a}/resolve`, { resolution: 'answered', value: 'abort' });
    await route.continue();
  });
  await p.keyboard.press('1');
  await page.says('[data-decision]', /Answered: Abort the release/);
  assert.equal(await p.locator('h2').innerText(), 'Race?');
  assert.equal(await page.selected() === b, false, 'the selection went on as if this had been decided');
  assert.equal((await agent.answer(a)).value, 'abort');
  assert.equal(await p.locator('[data-decision] li button').count(), 0);
});

test('withdrawn by its agent while the answer is typed', { refusals: [409] }, async ({ agent, page, p }) => {
  const a = await agent.ask('Typing?', { request: { permissions: { allow_edit: true } } });
  await page.row(a).waitFor();
  await page.open(a);
  await page.keys('w');
  await p.keyboard.type('my long answer');
  await agent.cancel(a);
  await page.says('[data-decision]', /Withdrawn by .* while you had it open\. Nothing was sent\./);
  await page.says('[data-decision]', /What you had written; nothing of it was sent/);
  await until('what was typed to be kept in sight', () => p.locator('[data-decision] textarea').inputValue(), (v) => v === 'my long answer');
  await page.says('[aria-live="polite"]', /Withdrawn by .* while you had it open/);
  await until('the focus to go to what was typed', () => p.evaluate(() => document.activeElement.matches('[data-decision] textarea[readonly]')));
  await page.keys('Control+Enter');
  assert.equal(await status(agent, a), 'cancelled');
});

test('what happens at the deadline is said before, and seen when it happens', async ({ agent, page, p }) => {
  const soon = await agent.ask('Soon?', { expires_at: seconds(8), request: { default_on_expire: 'hold' } });
  const later = await agent.ask('Later?', { expires_at: minutes(30) });
  await page.row(later).waitFor();
  await page.open(later);
  await page.says('[data-decision]', /If nobody answers by .*, it expires without an answer/);
  await page.open(soon);
  await page.says('[data-decision]', /If nobody answers by .*, the answer is Hold for review/);
  await page.says('[data-decision]', /0:0\d/);
  await page.says(`[data-id="${soon}"]`, /0:0\d/);
  await page.says('[data-decision]', /Expired (at|yesterday) \d\d:\d\d: nobody answered, and the agent gets Hold for review/);
  assert.equal(await p.locator('[data-decision] li button').count(), 0);
  const a = await agent.answer(soon);
  assert.equal(a.value, 'hold');
  assert.match(await p.locator('h2').innerText(), /Soon\?/);
  await until('it to leave', () => page.ids(), (ids) => !ids.includes(soon));
});

for (const [held, hold] of [['', 0], [', to be kept back', 60]]) {
  test(`what is written while the person answers elsewhere${held} is no command`, { settings: { 'resolve.hold_seconds': hold } }, async ({ hub, agent, page, p }) => {
    const [a, b] = [await agent.ask('Written twice?', { request: { permissions: { allow_edit: true } } }), await agent.ask('Next?')];
    await page.row(b).waitFor();
    await page.open(a);
    await page.keys('w');
    await p.keyboard.type('half a sent');
    await hub.call('POST', `/api/items/${a}/resolve`, { resolution: 'answered', value: 'hold' });
    await page.says('[data-decision]', /by you elsewhere while you had it open\. What you were writing was not sent\./);
    await until('the focus to go to what was typed', () => p.evaluate(() => document.activeElement.matches('[data-decision] textarea[readonly]')));
    await p.keyboard.type('ence, 1 end');
    await page.settled();
    assert.equal(await p.locator('[data-decision] textarea').inputValue(), 'half a sent');
    assert.equal(await status(agent, b), 'open');
    assert.equal(await p.locator('dialog[open]').count(), 0);
  });
}

test('what is half written outlasts a decision elsewhere that is held, whether that goes out or is taken back', { settings: { 'resolve.hold_seconds': 5 } }, async ({ hub, agent, page, p }) => {
  const [a, b] = [await agent.ask('Goes out?'), await agent.ask('Taken back?')];
  await page.row(b).waitFor();
  const kept = () => p.evaluate(() => document.activeElement.matches('[data-decision] textarea[readonly]'));
  await page.open(b);
  await page.keys('c');
  await p.keyboard.type('one half');
  await hub.call('POST', `/api/items/${b}/resolve`, { resolution: 'answered', value: 'hold' });
  await until('the words to be kept', kept);
  await hub.call('POST', `/api/items/${b}/undo`);
  await until('the field to come back', () => p.evaluate(() => document.activeElement.matches('[data-decision] textarea:not([readonly])')));
  await p.keyboard.type(' and 1 more');
  assert.equal(await p.locator('[data-decision] textarea').inputValue(), 'one half and 1 more');
  assert.equal(await status(agent, b), 'open');
  await page.keys('Escape');
  await page.open(a);
  await page.keys('c');
  await p.keyboard.type('the other half');
  await hub.call('POST', `/api/items/${a}/resolve`, { resolution: 'answered', value: 'hold' });
  await until('the words to be kept', kept);
  await until('it to go out', () => status(agent, a), (s) => s !== 'open');
  await page.says('[data-decision]', /Answered/);
  await page.settled();
  assert.equal(await p.locator('[data-decision] textarea').inputValue(), 'Comment: the other half');
});

test('what a form is answered with at its deadline is shown before', async ({ agent, page, p }) => {
  const schema = { type: 'object', properties: { region: { type: 'string', title: 'Region' }, key: { type: 'string', 'x-ma2h-sensitive': true } } };
  const id = await agent.ask('Where?', { expires_at: seconds(600), request: { mode: 'input', schema, default_on_expire: { region: 'eu-west', key: 'hush' } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /the answer is the one that the agent set beforehand/);
  await p.click('[data-decision] summary');
  await page.says('[data-decision] dl', /Region\s+eu-west\s+key\s+••••/);
});

test('an expired ask without a default says so', async ({ agent, page }) => {
  const id = await agent.ask('Gone?', { expires_at: seconds(5) });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Expired/);
  await page.says('[data-decision]', /the agent gets no answer.*has not asked yet what became of it/s); // and so there is none to be collected
});

test('who waits now is shown, and that it left', async ({ hub, agent, page }) => {
  const id = await agent.ask('Wait for me?');
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-item-pane]', /not waiting; can collect the answer later/);
  const wait = fetch(`${hub.url}/v1/messages/${id}?wait=20`, { headers: { Authorization: `Bearer ${agent.token}` } });
  await page.says('[data-item-pane]', /waiting now/);
  await page.keys('1');
  assert.equal((await (await wait).json()).response.response.value, 'ship');
});

test('an agent that looks again and again is said to listen', async ({ agent, page }) => {
  const id = await agent.ask('Do you look?');
  const other = await agent.ask('And at this?');
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-item-pane]', /not waiting; can collect the answer later/);
  await status(agent, id);
  await page.open(other); // it is asked for with every item, and again while one is on show
  await page.says('[data-item-pane]', /active just now; gets the answer when it next looks/);
});

test('what names nobody is not mine until I say so', async ({ hub, agent, page, p }) => {
  const id = await agent.post({ type: 'ask', title: 'May I?', request: { mode: 'confirm' } });
  await page.keys('g', 'w');
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Not yours to answer/);
  await page.keys('1', 'd', 'd', 'w');
  assert.equal(await status(agent, id), 'open');
  await p.click('text=Let me answer messages from this agent that name nobody');
  await page.says('[data-decision]', /Approve/);
  await page.keys('g', 'n');
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  assert.equal((await answered(agent, id)).value, 'approve');
  const { history } = await hub.call('GET', `/api/items/${id}`);
  assert.ok(history.some((h) => h.action === 'operator allowed to answer'), JSON.stringify(history));
});

test('what names somebody else is shown and cannot be decided', async ({ agent, page, p }) => {
  const id = await agent.ask('For Alice', { request: { allowed_resolvers: ['human:alice'] } });
  await page.keys('g', 'w');
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Only human:alice may answer it/);
  await page.keys('1', 'd', 'd');
  assert.equal(await status(agent, id), 'open');
  assert.equal(await p.locator('[data-decision] button').count(), 0);
});

test('a callback waits for approval, is approved, and arrives', async ({ agent, page, p }) => {
  const to = await receiver(204);
  const id = await agent.ask('Call me back?', { request: { callback: { mode: 'push', url: to.url } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await answered(agent, id);
  await page.keys('g', 'd');
  await page.row(id).waitFor();
  await page.says(`[data-id="${id}"]`, /address\?/);
  await page.open(id);
  await page.says('[data-decision]', new RegExp(`waits for your approval of ${to.host}. Nothing has been sent`));
  assert.equal(to.got.length, 0);
  await p.click('[data-decision] button:has-text("Approve")');
  await page.says('[data-decision]', new RegExp(`Callback delivered to ${to.host}, [\\d.]+ (ms|s) later`));
  await p.click('[data-decision] summary');
  await page.says('[data-decision] details', /204/);
  assert.equal(JSON.parse(to.got[0].body).response.value, 'ship');
  await until('the mark to go', () => page.row(id).innerText(), (t) => !t.includes('address?'));
  await to.end();
});

test('a refused callback says why, and is sent again', async ({ hub, agent, page, p }) => {
  const to = await receiver(410, 200);
  await hub.call('PUT', `/v1/agents/${encodeURIComponent(agent.id)}/policy`, { callback_hosts: [to.host] });
  const id = await agent.ask('Call me back?', { request: { callback: { mode: 'push', url: to.url } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await until('the first attempt', () => to.got.length);
  await page.says('.toast', /did not reach/);
  await p.locator('nav button[aria-label="Done, 1 answer not delivered"]').waitFor();
  await page.keys('g', 'd');
  await page.says(`[data-id="${id}"]`, /failed/);
  await page.open(id);
  await page.says('[data-decision]', /refused it/);
  await page.says('[data-decision]', /410/);
  await p.click('text=Send again');
  await page.says('[data-decision]', /Callback delivered/);
  await page.says('[data-decision]', /2 attempts/);
  await p.locator('nav button[aria-label="Done"]').waitFor();
  assert.equal(to.got.length, 2);
  await to.end();
});

test('an answer that the agent fetched itself is not called undelivered', async ({ hub, agent, page, p }) => {
  const to = await receiver(400);
  await hub.call('PUT', `/v1/agents/${encodeURIComponent(agent.id)}/policy`, { callback_hosts: [to.host] });
  const id = await agent.ask('Call me back?', { request: { callback: { mode: 'push', url: to.url } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await page.says('.toast', /did not reach/);
  await answered(agent, id); // by a pull
  await p.locator('.toast', { hasText: 'did not reach' }).waitFor({ state: 'detached', timeout: 5_000 });
  await p.locator('nav button[aria-label="Done"]').waitFor();
  await page.keys('g', 'd');
  await page.open(id);
  await page.says('[data-decision]', /refused it.*the agent collected the answer itself/s);
  assert.equal(await p.locator('text=Send again').count(), 0);
  assert.doesNotMatch(await page.row(id).innerText(), /failed/);
  await to.end();
});

test('a failing callback counts its attempts and can be retried now', async ({ hub, agent, page, p }) => {
  const to = await receiver(503, 503, 503, 200);
  await hub.call('PUT', `/v1/agents/${encodeURIComponent(agent.id)}/policy`, { callback_hosts: [to.host] });
  const id = await agent.ask('Call me back?', { request: { callback: { mode: 'push', url: to.url } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await page.keys('g', 'd');
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Attempt 4 of 8 to .* in \d/); // and that in a quarter of a minute
  await p.click('[data-decision] button:has-text("Send again now")');
  await page.says('[data-decision]', /Callback delivered/);
  await to.end();
});

test('a decision can be taken back while it is held', { settings: { 'resolve.hold_seconds': 5 } }, async ({ hub, agent, page, p }) => {
  const [a, b] = [await agent.ask('A', { request: { permissions: { allow_edit: true } } }), await agent.ask('B')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('w');
  await p.keyboard.type('my words');
  await p.keyboard.press('Control+Enter');
  await page.says('.toast', /goes out in [1-5] s/);
  await page.says('.toast', /Take back/);
  assert.equal(await status(agent, a), 'open');
  await page.shown(b);
  const { commit_at } = (await hub.call('GET', `/api/items/${a}`)).held_decision;
  await page.keys('Control+z');
  await page.shown(a);
  assert.equal(await p.inputValue('[data-decision] textarea'), 'my words');
  await until('its time to be over', () => Date.now(), (now) => now > commit_at + 500);
  assert.equal(await status(agent, a), 'open', 'it went out although it was taken back');
  await page.keys('Escape', '2');
  await page.says('.toast', /goes out in/);
  assert.equal((await answered(agent, a)).value, 'hold'); // after the hold
  await until('the toast to go', () => p.locator('.toast:has-text("goes out")').count(), (n) => n === 0);
});

test('a held decision survives a kill of the hub', { settings: { 'resolve.hold_seconds': 4 }, refusals: ['offline'] }, async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Hold on?');
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('2');
  await page.says('.toast', /goes out in/);
  await hub.down('SIGKILL');
  await page.says('.toast', /Whether it went out shows when the hub is back/);
  await hub.up();
  assert.equal((await until('the answer', () => agent.answer(id), (a) => a.status === 'answered')).value, 'hold');
  await until('the toast to go', () => p.locator('.toast').count(), (n) => n === 0);
});

test('what became of a held decision while the page was away is said', { settings: { 'resolve.hold_seconds': 60 }, refusals: ['offline'] }, async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Hold on?');
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('2');
  await page.says('.toast', /goes out in/);
  await p.evaluate(() => { window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError('away')); }); // until the agent has cancelled
  await hub.down('SIGKILL');
  await hub.up();
  await agent.cancel(id);
  await p.evaluate(() => { window.fetch = window.real; });
  await page.says('.toast', /was not sent: withdrawn meanwhile/);
});

test('a page that is loaded while a decision is held says so', { settings: { 'resolve.hold_seconds': 60 } }, async ({ hub, agent, page, p }) => {
  const [a, b] = [await agent.ask('Apples?'), await agent.ask('Bananas?')];
  for (const id of [a, b]) {
    await page.row(id).waitFor();
    await page.open(id);
    await page.keys('2');
    await page.says('.toast', /goes out in/);
  }
  await p.reload();
  await until('both', () => p.locator('.toast:has-text("Not sent yet: Answered"):has-text("goes out in")').count(), (n) => n === 2);
  await p.locator('.toast:has-text("Bananas?") >> text=Take back').click();
  await page.shown(b);
  assert.equal((await hub.call('GET', `/api/items/${b}`)).held_decision, undefined);
  await agent.cancel(a);
  await page.says('.toast', /Answered was not sent: withdrawn meanwhile/);
});

/** The stored text of a message, whose digits a reading of it would round. */
const told = (hub, agent, id) => fetch(`${hub.url}/v1/messages/${id}`, { headers: { Authorization: `Bearer ${agent.token}` } }).then((r) => r.text());

test('numbers beyond 2^53 are chosen and sent with all their digits', async ({ hub, agent, page, p }) => {
  const id = await agent.ask('How much?', { request: { mode: 'input', schema: { type: 'object', required: ['amount'], properties: {
    amount: { enum: [9007199254740993n, 9007199254740992n] }, typed: { type: 'integer', minimum: 9007199254740993n }, kept: { type: 'integer', default: 9007199254740995n },
  } } } });
  await page.row(id).waitFor();
  await page.open(id);
  assert.deepEqual(await p.locator('[data-decision] .picks label').allInnerTexts(), ['9007199254740993', '9007199254740992']);
  await p.click('[data-decision] .picks label:has-text("9007199254740993")');
  await field(p, 'typed').fill('9007199254740992');
  await p.click('text=Send the answer');
  await page.says('[data-decision]', /Not below 9007199254740993/);
  await field(p, 'typed').fill('9007199254740997');
  await p.click('text=Send the answer');
  await until('the answer', () => told(hub, agent, id), (t) => /"value":\s*\{/.test(t));
  const value = /"value":\s*(\{[^}]*\})/.exec(await told(hub, agent, id))[1];
  for (const [name, number] of [['amount', '9007199254740993'], ['typed', '9007199254740997'], ['kept', '9007199254740995']]) assert.match(value, new RegExp(`"${name}":\\s*${number}[,}]`));
  await page.at(`#/done/${id}`);
  await page.says('[data-decision]', /9007199254740993/);
});

test('a form may ask for names that every object has', async ({ hub, agent, page, p }) => {
  const names = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty'];
  const id = await agent.ask('Odd names?', { request: { mode: 'input', schema: { type: 'object', required: names, properties: Object.fromEntries(names.map((n) => [n, { type: 'string', minLength: 3 }])) } } });
  await page.row(id).waitFor();
  await page.open(id);
  for (const n of names) assert.equal(await field(p, n).inputValue(), '');
  await p.click('text=Send the answer');
  assert.equal(await p.locator('[data-decision] .problem:has-text("This is needed")').count(), names.length);
  for (const n of names) await field(p, n).fill(`my ${n}`);
  assert.equal(await p.locator('[data-decision] .problem').count(), 0);
  await p.click('text=Send the answer');
  const value = await until('the answer', () => told(hub, agent, id), (t) => /"value":\s*\{/.test(t)).then((t) => JSON.parse(t).response.response.value);
  assert.deepEqual(Object.entries(value).sort(), names.map((n) => [n, `my ${n}`]).sort());
  await page.at(`#/done/${id}`);
  await page.says('[data-decision]', /__proto__\s+my __proto__/);
  await page.says('[data-decision]', /constructor\s+my constructor/);
});

test('a schema that is only yes or no does not break the form', async ({ hub, agent, page, p }) => {
  const ask = (title, required) => agent.ask(title, { request: { mode: 'input', schema: { type: 'object', properties: { n: false, m: { type: 'string' }, any: true }, required } } });
  const id = await ask('Yes or no?', ['any']);
  const none = await ask('Nothing will do?', ['n']);
  await page.row(none).waitFor();
  await page.open(id);
  assert.equal(await field(p, 'n').count(), 0);
  await field(p, 'm').fill('words');
  await field(p, 'any').fill('[1, null]');
  await p.click('text=Send the answer');
  const value = await until('the answer', () => told(hub, agent, id), (t) => /"value":\s*\{/.test(t)).then((t) => JSON.parse(t).response.response.value);
  assert.deepEqual(value, { m: 'words', any: [1, null] });
  await page.shown(none);
  await page.says('[data-decision]', /needs “n” and takes no value for it/);
  await p.click('text=Send the answer');
  await page.settled();
  assert.equal(await status(agent, none), 'open');
});

test('choices whose labels read the same show their values', async ({ agent, page, p }) => {
  const id = await agent.ask('Which?', { request: { mode: 'select', options: [{ value: 'keep', label: 'Go on' }, { value: 'drop<b>', label: 'Go  on ' }, { value: 'stop', label: 'Stop' }, { value: 'none', label: '' }] } });
  const form = await agent.ask('Which of these?', { request: { mode: 'input', schema: { type: 'object', properties: {
    few: { enum: ['1', 1, 'two'] }, long: { enum: ['1', 1, 'two', 'three', 'four'] }, many: { type: 'array', items: { oneOf: [{ const: 'a', title: 'Go' }, { const: 'b', title: 'Go' }] } },
  } } } });
  await page.row(form).waitFor();
  await page.open(form);
  const texts = (selector) => p.locator(`[data-decision] ${selector}`).allInnerTexts().then((all) => all.map((t) => t.replace(/\s+/g, ' ').trim()));
  assert.deepEqual(await texts('.picks label'), ['1 "1"', '1 1', 'two']);
  assert.deepEqual((await texts('select option')).slice(1, 4), ['1 ("1")', '1 (1)', 'two']);
  assert.deepEqual(await texts('.ticks label'), ['Go "a"', 'Go "b"']);
  await page.open(id);
  assert.deepEqual(await texts('[data-choice]'), ['1 Go on keep', '2 Go on drop<b>', '3 Stop', '4 none']);
  await page.keys('2');
  await page.says('.toast', /Answered “Go {1,2}on +\(drop<b>\)”/);
  assert.equal((await answered(agent, id)).value, 'drop<b>');
  await page.at(`#/done/${id}`);
  await page.says('[data-decision]', /Go on\s+drop<b>/);
});
