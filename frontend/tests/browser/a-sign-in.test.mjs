import { spawn } from 'node:child_process';
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

test('a ticket that is opened in a tab which asks to sign in signs it in', { page: false, refusals: [401] }, async ({ hub, page, p }) => {
  await p.goto(hub.url);
  await p.waitForSelector('input[aria-label="Operator token"]');
  await p.evaluate(() => { location.hash = '#ticket=wrong'; });
  await page.says('main', /signs in once/);
  const ticket = await hub.ticket();
  await p.evaluate((t) => { location.hash = `#ticket=${t}`; }, ticket);
  await page.live();
  assert.ok(!(await p.evaluate(() => location.href)).includes(ticket), 'the ticket stays in the address');
  // in one that is signed in the place stays
  await page.keys('g', 's');
  const again = await hub.ticket();
  await p.evaluate((t) => { location.hash = `#ticket=${t}`; }, again);
  await p.waitForFunction(() => location.hash === '#/settings');
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
  for (const path of ['/api/state', '/api/items', '/api/events', '/v1/settings', '/api/fleet']) {
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

/** Runs a command in a shell; `out` comes with what it printed, once it is over. */
function shell(command) {
  const p = spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'ignore'] });
  let out = '';
  p.stdout.on('data', (d) => { out += d; });
  return { out: new Promise((done) => p.on('close', () => done(out.trim()))) };
}

test('from nothing to an answer printed in the terminal, without leaving the first page', { agent: false }, async ({ hub, page, p }) => {
  const began = Date.now();
  await page.says('h1', /Agents ring, you answer/);
  const short = await p.locator('pre:has-text("Ship it?")').innerText();
  const ask = shell(short); // as it is shown: the program and its folder are in it
  await page.says('[data-item-pane]', /asks you.+Ship it\?/s);
  await page.armed();
  await p.keyboard.press('2');
  assert.equal(await ask.out, 'hold');
  await page.says('[data-item-pane]', /Your answer arrived/);
  // Now as an agent, by the request as it is shown.
  await p.fill('input[aria-label="Name of the agent"]', 'me/first');
  await p.keyboard.press('Enter');
  await page.says('main', /Credentials of me\/first/);
  const curl = shell(await p.locator('pre:has-text("curl")').innerText());
  await page.says('[data-item-pane]', /me\/first asks you.+tidy up the build folder/s);
  await page.armed();
  await p.keyboard.press('1');
  const answer = JSON.parse(await curl.out);
  assert.deepEqual([answer.status, answer.response.response.value], ['answered', 'tidy']);
  await page.says('[data-item-pane]', /Your answer arrived: me\/first has it/);
  await page.says('main', /It rang/);
  await p.locator('[data-item-pane]').getByText('Open the inbox').click();
  await p.waitForSelector('nav');
  assert.ok(Date.now() - began < 20_000, 'it took too long');
  assert.equal(await page.selected(), null);
  await p.reload();
  await p.waitForSelector('nav'); // and not the first run again
  assert.equal((await hub.call('GET', '/api/state')).answered_ever, true);
});

test('in the first run a practice question is answered as any other', { agent: false }, async ({ page, p }) => {
  await p.click('text=Ask me something');
  await page.says('[data-item-pane]', /Practice/);
  await page.armed();
  await p.keyboard.press('1');
  await page.says('[data-decision]', /Answered.+nothing was sent/s);
  await page.says('[data-item-pane]', /That is all there is to it/);
});

test('in the first run an agent that is added in the terminal ticks its step', { agent: false }, async ({ hub, page, p }) => {
  await page.says('h1', /Agents ring/);
  const step = p.locator('section', { has: p.locator('h2', { hasText: 'Add an agent' }) });
  assert.equal(await step.getByLabel('Done').count(), 0);
  await hub.agent('deploybot');
  await step.getByLabel('Done').waitFor();
});

test('the first run can be skipped', { agent: false }, async ({ page, p }) => {
  await p.click('text=Skip, and open the inbox');
  await page.says('.empty', /Nothing needs you/);
  await p.reload();
  await page.says('.empty', /Nothing needs you/);
});

test('what is typed into the first page answers nothing', { agent: false }, async ({ hub, page, p }) => {
  await page.says('h1', /Agents ring/);
  const agent = await hub.agent('elsewhere/agent');
  await p.getByLabel('Name of the agent').pressSequentially('my-');
  const field = await p.getByLabel('Name of the agent').boundingBox();
  const id = await agent.ask('From elsewhere');
  await page.says('[data-item-pane]', /From elsewhere/);
  await page.says('[data-item-pane]', /The keys go to the field you are in/);
  assert.deepEqual(await p.getByLabel('Name of the agent').boundingBox(), field, 'the field moved');
  await page.keys('j', 'o', 'b', '1'); // the rest of the name
  assert.equal(await p.getByLabel('Name of the agent').inputValue(), 'my-job1');
  await p.keyboard.press('Escape');
  await p.keyboard.press('1'); // one too many, just as the field is left
  await page.says('.toast', /only just came up/);
  await page.keys('g', 'n', 'j', 'e', 'Enter', 'Space'); // commands of the inbox, and there is none here
  assert.equal((await agent.get(id)).status, 'open');
  await page.says('h1', /Agents ring/);
  await page.armed();
  await page.says('[data-item-pane]', /Press\s+1\s+–\s+3\s+to answer/);
  await p.keyboard.press('2');
  await until('the answer', () => agent.answer(id), (a) => a.value === 'hold');
});

test('the first page shows one question, counts the others, and none of them comes up under a finger', { agent: false }, async ({ hub, page, p }) => {
  const agent = await hub.agent('elsewhere/agent');
  const ids = [await agent.ask('One'), await agent.ask('Two'), await agent.ask('Three')];
  await page.says('[data-item-pane]', /One.*/s);
  await page.says('[data-item-pane]', /2 more wait/);
  await page.armed();
  await page.keys('1', '1', '1');
  await page.says('[data-item-pane]', /has not collected it yet/);
  await page.says('[data-item-pane]', /2 more wait/);
  assert.deepEqual((await Promise.all(ids.map((id) => agent.answer(id)))).map((a) => a.status), ['answered', 'open', 'open']);
  await page.says('[data-item-pane]', /Your answer arrived: elsewhere\/agent has it/);
  const late = await agent.ask('Four'); // what comes now is shown now
  await page.says('[data-item-pane]', /Four/);
  await agent.cancel(late);
  await page.says('[data-item-pane]', /Withdrawn/);
  await p.locator('[data-item-pane]').getByText('Open the inbox').click();
  await until('the rows', () => page.ids(), (rows) => rows.length === 2);
  assert.equal(await page.selected(), null);
});
