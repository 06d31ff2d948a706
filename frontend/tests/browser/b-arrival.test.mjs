import { assert, figure, test, until } from './harness.mjs';

test('a new item is in the page soon after its 202', { alone: true }, async ({ agent, page, p }) => {
  const late = [];
  for (let i = 0; i < 10; i++) {
    const id = await agent.ask(`Question ${i}`);
    const at = await p.waitForFunction((x) => window.seenAt[x], id).then((h) => h.jsonValue());
    late.push(Math.max(0, Math.round(at - agent.acceptedAt)));
  }
  late.sort((a, b) => a - b);
  figure(`new item, 202 → row in the page: median ${late[5]} ms, worst ${late[9]} ms`);
  assert.ok(late[9] < 1000, `too late: ${late}`);
  await page.title('(10) Deskbell');
  await page.says('nav', /Needs you\s*10/);
});

test('twenty arrivals disturb nothing', { viewport: { width: 1100, height: 600 } }, async ({ agent, page, p }) => {
  const ids = await agent.many(30, (i) => [`Old question ${i}`, { request: { permissions: { allow_edit: true } }, body: 'A paragraph.\n\n'.repeat(40) }]);
  await until('all of them', () => p.locator('.row[aria-setsize="30"]').count(), (n) => n > 0);
  const list = await page.ids();
  await page.open(list[3]);
  await page.keys('w');
  await p.keyboard.type('half an ans');
  await p.evaluate(() => {
    document.querySelector('[data-list]').scrollTop = 220;
    document.querySelector('[data-reading]').scrollTop = 333;
    const field = document.querySelector('[data-decision] textarea');
    field.setSelectionRange(5, 7);
  });
  await page.settled();
  const look = () => p.evaluate(() => {
    const field = document.activeElement;
    const top = document.querySelector('[data-list]').getBoundingClientRect().top;
    const first = [...document.querySelectorAll('.row')].filter((r) => r.getBoundingClientRect().top >= top).sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)[0];
    return { tag: field.tagName, text: field.value, caret: [field.selectionStart, field.selectionEnd], read: document.querySelector('[data-reading]').scrollTop,
      first: first.dataset.id, y: first.getBoundingClientRect().top, selected: document.querySelector('h2').innerText,
      block: document.querySelector('[data-decision]').getBoundingClientRect().top };
  });
  const before = await look();
  assert.equal(before.read, 333);
  for (let i = 0; i < 20; i++) await agent.ask(`Urgent ${i}`, { priority: 'urgent' });
  await until('all fifty', () => p.locator('.row[aria-setsize="50"]').count(), (n) => n > 0);
  await page.settled();
  assert.deepEqual(await look(), before);
  await p.keyboard.press('ArrowRight');
  await p.keyboard.type('w');
  assert.equal((await look()).text, 'half anw ans');
  assert.ok(ids.includes(await page.p.evaluate(() => decodeURIComponent(location.hash.split('/')[2]))));
});

test('arrivals while nothing is selected select nothing', async ({ agent, page, p }) => {
  const first = await agent.ask('First');
  await page.row(first).waitFor();
  await p.evaluate(() => document.querySelector('[data-list]').focus());
  for (let i = 0; i < 5; i++) await agent.ask(`More ${i}`, { priority: 'urgent' });
  await until('six', () => page.ids(), (ids) => ids.length === 6);
  assert.equal(await page.selected(), null);
  await page.keys('1', 'Space', 'd', 'd');
  await page.says('.toast', /Select a question first: j/);
  assert.equal(await page.selected(), null);
  assert.equal((await agent.get(first)).status, 'open');
  assert.equal(await p.evaluate(() => document.activeElement.hasAttribute('data-list')), true);
  await page.keys('Enter'); // it reads the first, and decides nothing
  await page.shown((await page.ids())[0]);
});

test('what leaves elsewhere leaves the list; the open item stays to be read', async ({ hub, agent, page, p }) => {
  const [a, b] = [await agent.ask('To be withdrawn'), await agent.ask('To stay')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('c');
  await p.keyboard.type('a comment');
  await agent.cancel(a);
  await page.says('[data-decision]', /Withdrawn/);
  assert.equal(await p.locator('h2').innerText(), 'To be withdrawn');
  assert.equal(await p.locator('[data-decision] li button').count(), 0);
  await page.keys('1', 'Escape', '1');
  assert.equal((await agent.get(b)).status, 'open');
  await until('the row to leave', () => page.ids(), (ids) => !ids.includes(a));
  await page.keys('j');
  assert.equal(await page.selected(), b);
  assert.equal((await hub.call('GET', `/api/items/${a}`)).state, 'cancelled');
});

test('a burst of two thousand settles and leaves the page light', { settings: { 'rate_limit.requests_per_minute': 10_000_000 }, alone: true }, async ({ agent, page, p }) => {
  await agent.many(2000, (i) => [`Burst ${i}`]);
  const end = Date.now();
  await until('the count', () => p.title(), (t) => t === '(2000) Deskbell');
  figure(`2,000 posts settled ${Date.now() - end} ms after the last`);
  await page.settled();
  assert.ok(await p.locator('.row').count() < 60);
  await page.keys('j');
  await page.says('[data-decision]', /Ship to prod now/);
});
