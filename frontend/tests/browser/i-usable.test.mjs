// What a person who is new here ran into: each test is one thing that once could not be seen, reached or told apart.
import { assert, test, until } from './harness.mjs';

const small = { width: 900, height: 600 };
const status = (agent, id) => agent.answer(id).then((a) => a.status);

test('a key answers only a choice that can be seen', { viewport: small }, async ({ agent, page, p }) => {
  const options = Array.from({ length: 12 }, (_, i) => ({ value: `v${i + 1}`, label: `Choice number ${i + 1}` }));
  const id = await agent.ask('Twelve choices', { request: { mode: 'select', options } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /\d more choices/);
  await page.keys('9');
  await page.says('.toast', /out of sight. Press 9 again to answer “Choice number 9”/);
  assert.equal(await status(agent, id), 'open');
  assert.ok(await p.evaluate(() => document.querySelectorAll('[data-choice]')[8].getBoundingClientRect().bottom <= document.querySelector('[data-scrolls]').getBoundingClientRect().bottom + 1));
  await page.keys('9');
  assert.equal((await until('the answer', () => agent.answer(id), (a) => a.status === 'answered')).value, 'v9');
});

test('a long description goes under its label, and what it pushes away is not answered blindly', { viewport: small }, async ({ agent, page, p }) => {
  const about = 'It does one thing and then another, and it says so at some length. '.repeat(9);
  const id = await agent.ask('Which?', { request: { mode: 'select', options: [{ value: 'a', label: 'The first', description: about }, { value: 'b', label: 'The second', description: about }, { value: 'c', label: 'The third', description: 'short' }] } });
  await page.row(id).waitFor();
  await page.open(id);
  const wide = await p.evaluate(() => document.querySelector('[data-choice] .about').getBoundingClientRect().width);
  assert.ok(wide > 300, `the description is ${wide} px wide`);
  await page.keys('3');
  await page.says('.toast', /Press 3 again/);
  assert.equal(await status(agent, id), 'open');
});

test('no choice is answered while the choices are not shown', async ({ agent, page }) => {
  const id = await agent.ask('Decline?');
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('d', '2');
  await page.says('.toast', /not shown/);
  assert.equal(await status(agent, id), 'open');
});

test('a long checklist says what is below, and ticks only what can be seen; completing stays in sight', { viewport: small }, async ({ agent, page, p }) => {
  const id = await agent.task('Many steps', { checklist: Array.from({ length: 30 }, (_, i) => ({ text: `Step ${i + 1}` })) });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /\d+ more steps/);
  assert.ok(await p.evaluate(() => [...document.querySelectorAll('[data-decision] button')].find((b) => /Complete/.test(b.innerText)).getBoundingClientRect().bottom <= innerHeight));
  await p.evaluate(() => { document.querySelector('[data-scrolls]').scrollTop = 1e6; });
  await page.keys('2');
  await page.says('.toast', /Press 2 again to tick it/);
  await page.says('[data-decision]', /0 of 30 done/);
  await page.keys('2');
  await page.says('[data-decision]', /1 of 30 done/);
});

test('what is urgent is seen: at the top it comes in, further down it is announced', { viewport: small }, async ({ agent, page, p }) => {
  const ids = [];
  for (let i = 0; i < 30; i++) ids.push(await agent.ask(`Ask ${i}`));
  await page.row(ids[0]).waitFor();
  await page.open(ids[0]);
  const top = () => p.evaluate(() => document.querySelector('[data-list]').scrollTop);
  const first = await agent.ask('Now!', { priority: 'urgent' });
  await page.row(first).waitFor();
  await p.waitForTimeout(150);
  assert.equal(await top(), 0);
  assert.ok(await page.row(first).isVisible());
  assert.equal(await page.selected(), ids[0]);
  await p.evaluate(() => { document.querySelector('[data-list]').scrollTop = 500; });
  await page.says('.above', /1 urgent above/);
  await agent.ask('Now too!', { priority: 'urgent' });
  await page.says('.above', /2 urgent above/);
  await p.click('.above button');
  await until('the top', top, (t) => t === 0);
  assert.equal(await p.locator('.above').count(), 0);
});

test('compact rows show their priority', async ({ agent, page, p }) => {
  await p.evaluate(() => { document.documentElement.dataset.density = 'compact'; });
  const id = await agent.ask('Now!', { priority: 'urgent' });
  await page.row(id).waitFor();
  assert.ok(await p.evaluate(() => document.querySelector('.row .bar').getBoundingClientRect().height) > 20);
});

test('a page begins at its top, and the fleet is where it was left', { viewport: small, before: async ({ hub }) => { for (let i = 0; i < 40; i++) await hub.agent(`many/a${String(i).padStart(2, '0')}`); } }, async ({ page, p }) => {
  await page.keys('g', 'f');
  await p.locator('[data-stop="many/a30"]').scrollIntoViewIfNeeded();
  const top = () => p.evaluate(() => document.querySelector('main.page').scrollTop);
  const was = await top();
  assert.ok(was > 300);
  await p.click('[data-stop="many/a30"]');
  await page.says('h1', /many\/a30/);
  assert.equal(await top(), 0);
  await page.keys('Escape');
  await page.says('h1', /Fleet/);
  await until('the place', top, (t) => Math.abs(t - was) < 60);
  await page.keys('g', 's');
  await page.says('h1', /Settings/);
  assert.equal(await top(), 0);
});

test('several of a few are ticked in a form', { refusals: [422] }, async ({ agent, page, p }) => {
  const id = await agent.ask('Which days?', { request: { mode: 'input', schema: { type: 'object', required: ['days'], properties: {
    days: { type: 'array', title: 'Days', uniqueItems: true, minItems: 1, maxItems: 2, default: ['tue'], items: { type: 'string', enum: ['mon', 'tue', 'wed'] } },
    hosts: { type: 'array', title: 'Hosts', minItems: 1, maxItems: 3, items: { type: 'string' } },
  } } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /choose 1 to 2/);
  await page.says('[data-decision]', /one per line, 1 to 3/);
  const box = (name) => p.getByRole('checkbox', { name });
  assert.ok(await box('tue').isChecked());
  await box('tue').uncheck();
  await p.click('text=Send the answer');
  await page.says('[data-decision]', /Choose at least one/);
  await p.waitForFunction(() => document.activeElement.type === 'checkbox');
  await page.keys('Space');
  await box('wed').check();
  await p.click('text=Send the answer');
  assert.deepEqual((await until('the answer', () => agent.answer(id), (a) => a.status === 'answered')).value, { days: ['mon', 'wed'] });
});

test('an ask that expired without a default reads as a sentence', async ({ agent, page }) => {
  const id = await agent.ask('Gone?', { expires_at: new Date(Date.now() + 1500).toISOString() });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Expired at \d\d:\d\d: nobody answered/);
});
