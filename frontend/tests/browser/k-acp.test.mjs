import { crew } from './acp.mjs';
import { assert, test, until } from './harness.mjs';

const among = { before: ({ hub }) => crew(hub) };

test('the progress of a task between agents is a bar in its row and in its pane, and moves while one looks', among, async ({ page, p, given: g }) => {
  await page.keys('g', 'b');
  await page.row(g.task).waitFor();
  const bar = p.locator(`.row[data-id="${g.task}"] progress`);
  assert.equal(await bar.getAttribute('value'), '40');
  await page.open(g.task);
  await page.says('[data-decision]', /40 %/);
  await page.says('[data-decision]', /read 4 of 10 files/);
  await page.says('[data-reading]', /Progress/);
  await g.hand.call('task.progress', { agentId: g.worker, correlationId: 'c-1', chunk: 'nearly', progress: 0.9 });
  await page.says('[data-decision]', /90 %/);
  await until('the row', () => bar.getAttribute('value'), (v) => v === '90');
  await g.hand.call('task.result', { agentId: g.worker, correlationId: 'c-1', output: 'Two things.' });
  await page.says('[data-decision]', /Completed/);
  await until('no bar', () => bar.count(), (n) => n === 0);
});

test('a task whose progress is told in words alone has them, and no bar', among, async ({ page, p, given: g }) => {
  const task = (await g.boss.call('task.submit', { agentId: g.worker, prompt: 'Look around', correlationId: 'c-2' })).messageId;
  await g.hand.call('task.progress', { agentId: g.worker, correlationId: 'c-2', chunk: 'began to look' });
  await page.keys('g', 'b');
  await page.row(task).waitFor();
  await page.open(task);
  await page.says('[data-decision]', /began to look/);
  assert.equal(await p.locator(`.row[data-id="${task}"] progress, [data-decision] progress`).count(), 0);
});

test('a question of an agent of ACP is answered like any other, and the answer goes back in its words', among, async ({ page, p, given: g }) => {
  await page.keys('g', 'n');
  await page.open(g.query);
  await page.says('[data-decision]', /tabs/);
  await page.keys('2');
  const answer = await until('the answer', async () => (await g.hand.collect()).find((m) => m.params.type === 'insight'));
  assert.deepEqual([answer.method, answer.params.payload.value, answer.params.correlationId], ['message.send', 'spaces', 'q-1']);
  assert.ok(p);
});

test('a use of a tool between agents that waits for leave is a call like any other, and goes on when it is allowed', among, async ({ page, given: g }) => {
  await page.keys('g', 'n');
  await page.open(g.gated);
  await page.says('[data-reading]', /rm -rf build/);
  await page.keys('1');
  const got = await until('the call', async () => (await g.hand.collect()).find((m) => m.method === 'tool.invoke'));
  assert.deepEqual([got.params.tool, got.params.input, got.params.from], ['shell', { command: 'rm -rf build' }, 'ops/boss']);
});

test('an agent of ACP shows its role, its children, what it shares, and ends when it is stopped', among, async ({ hub, page, p, given: g }) => {
  await g.hand.call('context.share', { fromAgent: g.worker, key: 'large', value: 'x'.repeat(20_000) });
  await page.keys('g', 'f');
  await p.click(`.head:has-text("acp/${g.worker}")`);
  await page.says('main', /Code reviewer/);
  await page.says('main', /version 1, for good/);
  await page.says('main', /tabs/);
  await page.says('main', /20,002 bytes are not shown/);
  await p.click('text=acp/linter-');
  await page.says('main', /Parent/);
  await p.click(`dd button:has-text("acp/${g.worker}")`);
  await p.click('text=Stop…');
  await page.says('dialog', /every agent below it/);
  await p.click('dialog >> text=Stop the agent');
  await page.says('main', /Stopped/);
  const { agents } = await g.hand.call('agent.status');
  assert.deepEqual(agents.map((a) => a.state), ['running', 'stopped', 'stopped']);
  assert.ok(hub);
});

test('commands and the gate are set in the settings, and a value that cannot be is said', { ...among, refusals: [422] }, async ({ hub, page, p }) => {
  await page.keys('g', 's');
  const gate = p.locator('input[aria-describedby]').and(p.getByLabel('Ask about tools'));
  await gate.fill('["shell*"]');
  await gate.press('Enter');
  await until('the list', async () => (await hub.call('GET', '/v1/settings'))['acp.gate'], (v) => JSON.stringify(v) === '["shell*"]');
  await gate.fill('none');
  await gate.press('Enter');
  await until('the word', async () => (await hub.call('GET', '/v1/settings'))['acp.gate'], (v) => v === 'none');
  const roles = p.getByLabel('Commands by role');
  await roles.fill('{"worker": 7}');
  await roles.press('Enter');
  await page.says('[role="alert"]', /Must be an object of commands by role/);
  await roles.fill('{"worker": ["true"]}');
  await roles.press('Enter');
  await until('the command', async () => (await hub.call('GET', '/v1/settings'))['acp.roles'], (v) => JSON.stringify(v) === '{"worker":["true"]}');
});
