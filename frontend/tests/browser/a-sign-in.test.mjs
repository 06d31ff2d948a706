import { assert, test, until } from './harness.mjs';

test('a ticket signs in once and leaves the address', { page: false, refusals: [401] }, async ({ hub, page, p }) => {
  const ticket = await hub.ticket();
  await p.goto(`${hub.url}/#ticket=${ticket}`);
  await page.live();
  assert.ok(!(await p.evaluate(() => location.href)).includes(ticket), 'the ticket stays in the address');
  assert.equal(await p.evaluate(() => document.cookie), '', 'a script can read the cookie');
  const [cookie] = await page.context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
  await page.context.clearCookies();
  await p.goto('about:blank');
  await p.goto(`${hub.url}/#ticket=${ticket}`);
  await p.waitForSelector('input[aria-label="Operator token"]');
});

test('the token signs in, a wrong one says so', { page: false, refusals: [401] }, async ({ hub, page, p }) => {
  await p.goto(hub.url);
  const field = p.locator('input[aria-label="Operator token"]');
  await field.fill('wrong');
  await field.press('Enter');
  await page.says('main', /That is not the token of this hub/);
  await field.fill(` ${hub.operatorToken}\n`);
  await p.click('text=Sign in >> nth=-1');
  await page.live();
  await p.reload();
  await page.live();
  const kept = await p.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.ok(!kept.includes(hub.operatorToken), 'the token is kept by the page');
});

test('nothing is shown or told to who is not signed in', { page: false, refusals: [401] }, async ({ hub, agent, page, p }) => {
  await agent.ask('A secret question');
  await p.goto(`${hub.url}/#/needs`);
  await p.waitForSelector('input[aria-label="Operator token"]');
  assert.ok(!(await p.content()).includes('A secret question'));
  for (const path of ['/api/state', '/api/items', '/api/events', '/v1/settings', '/api/agents']) {
    assert.equal((await fetch(hub.url + path)).status, 401, path);
  }
  assert.deepEqual(await page.context.cookies(), []);
});

test('a session that ends leads to signing in, and back to the same place', { refusals: [401] }, async ({ agent, page, p, hub }) => {
  await agent.ask('Stay?');
  await p.waitForSelector('.row');
  await page.context.clearCookies();
  await p.keyboard.press('g');
  await p.keyboard.press('d');
  await p.waitForSelector('input[aria-label="Operator token"]');
  await p.fill('input', hub.operatorToken);
  await p.keyboard.press('Enter');
  await page.live();
  await page.keys('g', 'n');
  await p.waitForSelector('.row');
});

test('from nothing to an answered question in a minute of doing', { agent: false }, async ({ hub, page, p }) => {
  const began = Date.now();
  await page.says('h1', /Agents ring, you answer/);
  await p.keyboard.press('Tab');
  await p.fill('input[aria-label="Name of the agent"]', 'me/first');
  await p.keyboard.press('Enter');
  await page.says('main', /Credentials of me\/first/);
  // The command as it is shown works.
  const command = await p.locator('pre:has-text("curl")').innerText();
  const { execFileSync } = await import('node:child_process');
  const answer = JSON.parse(execFileSync('bash', ['-c', command], { encoding: 'utf8' }));
  assert.match(answer.id, /^msg_/);
  await page.says('main', /It rang/);
  await p.click('text=Ask me something');
  await page.says('[data-item-pane]', /Practice/);
  await page.armed();
  await p.keyboard.press('1');
  await page.says('[data-decision]', /Answered/);
  await p.click('text=Open the inbox');
  await p.waitForSelector('nav');
  assert.ok(Date.now() - began < 20_000, 'it took too long');
  await page.says('.row', /tidy up the build folder/);
  await p.reload();
  await p.waitForSelector('nav'); // and not the first run again
  assert.equal((await hub.call('GET', '/api/state')).answered_ever, true);
});

test('the first run can be skipped', { agent: false }, async ({ page, p }) => {
  await p.click('text=Skip, and open the inbox');
  await page.says('.empty', /Nothing needs you/);
  await p.reload();
  await page.says('.empty', /Nothing needs you/);
});

test('the first run says when an agent added elsewhere asks, and leaves only when told to', { agent: false }, async ({ hub, page, p }) => {
  await page.says('h1', /Agents ring/);
  const agent = await hub.agent('elsewhere/agent');
  await p.getByLabel('Name of the agent').pressSequentially('my-');
  const id = await agent.ask('From elsewhere');
  await page.says('[role=status]', /1 question waits for you/);
  await page.keys('j', 'o', 'b', '1'); // the rest of the name, which answers nothing
  assert.equal(await p.getByLabel('Name of the agent').inputValue(), 'my-job1');
  assert.equal((await agent.get(id)).status, 'open');
  await p.click('text=Open the inbox');
  await until('the row', () => page.ids(), (ids) => ids.includes(id));
  assert.equal(await page.selected(), null);
});
