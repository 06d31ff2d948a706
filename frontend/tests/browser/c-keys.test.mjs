import { assert, test, until } from './harness.mjs';

const status = (agent, id) => agent.get(id).then((m) => m.status);
const answered = (agent, id) => until('the answer', () => agent.answer(id), (a) => a.status === 'answered');

test('j k and the arrows move, Enter reads, Escape comes back', async ({ agent, page, p }) => {
  const ids = [];
  for (let i = 0; i < 4; i++) ids.push(await agent.ask(`Question ${i}`));
  await page.row(ids[3]).waitFor();
  await page.keys('j');
  assert.equal(await page.selected(), ids[0]);
  await page.keys('j', 'ArrowDown', 'k');
  assert.equal(await page.selected(), ids[1]);
  await page.keys('End');
  assert.equal(await page.selected(), ids[3]);
  await page.keys('j');
  assert.equal(await page.selected(), ids[3]);
  await page.keys('Home', 'k', 'ArrowUp');
  assert.equal(await page.selected(), ids[0]);
  await page.keys('Enter');
  assert.equal(await p.evaluate(() => document.activeElement.hasAttribute('data-reading')), true);
  await page.keys('Escape');
  assert.equal(await p.evaluate(() => document.activeElement.hasAttribute('data-list')), true);
  assert.match(await p.evaluate(() => location.hash), new RegExp(`#/needs/${ids[0]}`));
  await p.reload();
  await page.shown(ids[0]);
});

test('a number answers the item on show and the selection goes on', async ({ agent, page }) => {
  const [a, b] = [await agent.ask('One'), await agent.ask('Two')];
  await page.row(b).waitFor();
  await page.keys('j');
  await page.shown(a);
  await page.keys('2');
  const m = await answered(agent, a);
  assert.deepEqual([m.value, m.edited ?? false], ['hold', false]);
  await page.shown(b);
  await page.title('(1) Deskbell');
  assert.equal(await status(agent, b), 'open');
});

test('Enter and Space decide nothing without a button in focus', async ({ agent, page, p }) => {
  const a = await agent.ask('Careful?');
  await page.row(a).waitFor();
  await page.keys('Enter', 'Space', 'j');
  await page.shown(a);
  await page.keys('Enter', 'Space', 'Enter', 'Space', 'Enter');
  assert.equal(await status(agent, a), 'open');
  await p.locator('[data-decision] li button').nth(1).focus();
  await page.keys('Enter'); // with the focus it is a press like any other
  assert.equal((await answered(agent, a)).value, 'hold');
});

test('a held key answers one item', async ({ agent, page, p }) => {
  const ids = [];
  for (let i = 0; i < 4; i++) ids.push(await agent.ask(`Hold ${i}`));
  await page.row(ids[3]).waitFor();
  await page.open(ids[0]);
  let next = false;
  const shown = p.waitForFunction((id) => document.querySelector('.row.selected')?.dataset.id === id
    && document.querySelector('[data-decision]') && !document.querySelector('[data-decision] :is(.off, [data-settling])'), ids[1]).finally(() => { next = true; });
  const press = () => p.keyboard.down('1').then(() => p.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn))));
  while (!next) await press();
  await shown;
  for (let i = 0; i < 20; i++) await press(); // the next one could be answered by now, and the key is still held
  await p.keyboard.up('1');
  await page.settled();
  assert.deepEqual(await Promise.all(ids.map((id) => status(agent, id))), ['answered', 'open', 'open', 'open']);
  await page.shown(ids[1]);
});

test('a second press meant for the last item does not decide the next', async ({ agent, page, p }) => {
  const ids = [await agent.ask('A'), await agent.ask('B')];
  await page.row(ids[1]).waitFor();
  await page.open(ids[0]);
  const next = await page.keysWhenNext(ids[1], '1', '2', 'd', 'd');
  await p.keyboard.press('1');
  await next.pressed();
  await page.says('.toast', /Press again/);
  assert.equal(await status(agent, ids[1]), 'open');
  await page.armed();
  await page.keys('2');
  assert.equal((await answered(agent, ids[1])).value, 'hold');
});

test('a double click answers one item', async ({ agent, page }) => {
  const ids = [await agent.ask('A'), await agent.ask('B')];
  await page.row(ids[1]).waitFor();
  await page.open(ids[0]);
  await page.p.locator('[data-decision] li button').first().dblclick();
  await page.shown(ids[1]);
  assert.deepEqual([await status(agent, ids[0]), await status(agent, ids[1])], ['answered', 'open']);
});

test('a key never lands on another item, however the list moves', { settings: { 'rate_limit.requests_per_minute': 1_000_000 } }, async ({ hub, agent, page, p }) => {
  // Agents ask and withdraw while a person reads and answers; each press must decide what its moment showed, or nothing.
  const ids = [];
  for (let i = 0; i < 12; i++) ids.push(await agent.ask(`Moving ${i}`));
  await page.row(ids[11]).waitFor();
  let stop = false;
  const storm = (async () => {
    for (let i = 0; !stop; i++) {
      const id = await agent.ask(`Storm ${i}`, { priority: ['urgent', 'low', 'high', 'normal'][i % 4] });
      if (i % 2) await agent.cancel(id);
      await new Promise((r) => setTimeout(r, 25));
    }
  })();
  const meant = new Map();
  try {
    for (let i = 0; i < 12; i++) {
      await p.keyboard.press('j'); // here nothing ever comes to rest
      await p.waitForFunction(() => document.querySelector('[data-decision]') && !document.querySelector('[data-decision] :is(.off, [data-settling])'));
      const id = await p.evaluate(() => decodeURIComponent(location.hash.split('/')[2]));
      meant.set(id, [...(meant.get(id) ?? []), ['ship', 'hold', 'abort'][i % 3]]); // one whose answer is under way may still be on show
      await p.keyboard.press(String(1 + (i % 3)));
      await p.waitForFunction((x) => decodeURIComponent(location.hash.split('/')[2] ?? '') !== x || !document.querySelector('[data-decision] li button'), id);
    }
  } finally {
    stop = true;
    await storm;
  }
  const { messages } = await hub.call('GET', '/v1/messages?status=answered&limit=100');
  for (const m of messages) assert.ok(meant.get(m.id)?.includes(m.response.response.value), `${m.title} was answered otherwise than meant`);
  assert.ok(messages.length >= 6, `only ${messages.length} were answered`);
});

test('keys pressed faster than items load decide nothing that was not on show', async ({ agent, page, p }) => {
  const ids = [];
  for (let i = 0; i < 5; i++) ids.push(await agent.ask(`Fast ${i}`));
  await page.row(ids[4]).waitFor();
  let load;
  const loaded = new Promise((r) => { load = r; });
  await p.route('**/api/items/msg_*', (route) => loaded.then(() => route.continue()).catch(() => {})); // one that was left is gone
  await p.keyboard.press('j');
  await p.keyboard.press('j');
  await p.keyboard.press('1');
  await p.keyboard.press('j');
  await p.keyboard.press('2');
  load();
  await page.settled();
  for (const id of ids) assert.equal(await status(agent, id), 'open');
});

test('declining takes two presses, and Escape takes the first back', async ({ agent, page }) => {
  const [a, b] = [await agent.ask('A'), await agent.ask('B')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('d');
  await page.says('[data-decision]', /Decline to answer\?/);
  await page.keys('Escape');
  await page.says('[data-decision]', /Ship to prod now/);
  assert.equal(await status(agent, a), 'open');
  await page.keys('d', 'Control+Enter'); // the field of the reason has the focus
  await until('the decline', () => status(agent, a), (s) => s === 'declined');
  await page.shown(b);
});

test('a reason is written letter by letter, whatever it begins with', async ({ agent, page, p }) => {
  const [a, b] = [await agent.ask('A'), await agent.ask('B')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('d');
  await p.keyboard.type('dup of 1 above');
  assert.equal(await p.inputValue('[data-decision] textarea'), 'dup of 1 above');
  assert.equal(await page.selected(), a);
  assert.deepEqual([await status(agent, a), await status(agent, b)], ['open', 'open']);
  await page.keys('Control+Enter');
  const gone = await until('the decline', () => agent.answer(a), (x) => x.status === 'declined');
  assert.equal(gone.comment, 'dup of 1 above');
  assert.equal(await status(agent, b), 'open');
});

test('w writes an answer, c a comment, Ctrl+Enter sends', async ({ agent, page, p }) => {
  const [a, b] = [await agent.ask('A', { request: { permissions: { allow_edit: true } } }), await agent.ask('B')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('w');
  await p.keyboard.type('neither, wait until Monday: 1 2 3 d s z e');
  await p.keyboard.press('Control+Enter');
  const m = await answered(agent, a);
  assert.deepEqual([m.value, m.edited], ['neither, wait until Monday: 1 2 3 d s z e', true]);
  await page.shown(b);
  await page.keys('w'); // not permitted here
  assert.equal(await p.locator('[data-decision] textarea').count(), 0);
  await page.keys('c');
  await p.keyboard.type('because');
  await page.keys('Escape', '3');
  const n = await answered(agent, b);
  assert.deepEqual([n.value, n.comment], ['abort', 'because']);
});

test('s stars, u marks unread, z snoozes, e archives', async ({ hub, agent, page }) => {
  const a = await agent.ask('A');
  const n = await agent.notify('Backup finished');
  await page.row(a).waitFor();
  await page.open(a);
  const item = (id) => hub.call('GET', `/api/items/${id}`);
  await until('it to be read', () => item(a), (i) => !i.unread);
  await page.keys('s');
  await until('the star', () => item(a), (i) => i.starred);
  await page.keys('u');
  await until('it to be unread', () => item(a), (i) => i.unread);
  await page.keys('e');
  await page.says('.toast', /still open/);
  assert.equal((await item(a)).archived, false);
  await page.keys('z');
  await page.says('dialog', /In 20 minutes/);
  await page.keys('2');
  const snoozed = await until('the snooze', () => item(a), (i) => i.snoozed_until > 0);
  assert.ok(Math.abs(snoozed.snoozed_until - Date.now() - 3_600_000) < 60_000);
  assert.equal(snoozed.state, 'open', 'the 2 of the menu answered it');
  await until('it to leave the list', () => page.ids(), (ids) => !ids.includes(a));
  await page.title('Deskbell');
  await page.says('.toast', /Snoozed until .*\d\d:\d\d/);
  await page.p.click('.toast button:has-text("Undo")');
  await page.row(a).waitFor();
  await until('it to be awake', () => item(a), (i) => !i.snoozed_until);
  await page.keys('g', 't');
  await page.row(n).waitFor();
  await page.keys('j', 'e');
  await until('the archive', () => item(n), (i) => i.archived);
  await until('it to leave', () => page.ids(), (ids) => !ids.includes(n));
  await page.says('.toast', /Put away in the archive/);
  await page.keys('Control+z');
  await until('it to be taken back', () => item(n), (i) => !i.archived);
  await page.row(n).waitFor();
  await page.open(n);
  await page.keys('e');
  await until('the archive again', () => item(n), (i) => i.archived);
  await page.keys('g', 'e');
  await page.row(n).waitFor(); // what was put away can be found again
  await page.open(n);
  await page.keys('e');
  await until('it to come back', () => item(n), (i) => !i.archived);
});

test('what is put away leaves the keys with the item that comes up', async ({ agent, page, p }) => {
  for (let i = 0; i < 3; i++) await agent.notify(`Notice ${i}`, { body: 'Line\n\n'.repeat(80) });
  await page.keys('g', 't');
  await page.says('.row', /Notice/);
  await page.keys('j', 'Enter');
  const reads = () => p.evaluate(() => document.activeElement.hasAttribute('data-reading'));
  await until('it is read', reads);
  for (let i = 0; i < 2; i++) {
    const before = await page.selected();
    await page.keys('e');
    await until('another comes up', () => page.selected(), (id) => id !== before);
    await until('the keys are its own', reads);
  }
  await page.keys('Control+z');
  await until('it is back', () => page.ids(), (ids) => ids.length === 2);
  await until('the keys are still there', reads);
});

test('a snooze that ends brings the item back', async ({ hub, agent, page }) => {
  const a = await agent.ask('Later');
  await page.row(a).waitFor();
  await hub.call('POST', `/api/items/${a}/marks`, { snoozed_until: Date.now() + 4000 });
  await until('it to leave', () => page.ids(), (ids) => ids.length === 0);
  await until('it to come back', () => page.ids(), (ids) => ids.includes(a));
});

test('g goes, ? shows the keys, and an overlay blocks every decision', async ({ agent, page, p }) => {
  const a = await agent.ask('A');
  await page.row(a).waitFor();
  for (const [key, heading] of [['w', 'Waiting'], ['t', 'Notices'], ['d', 'Done'], ['e', 'Archive'], ['f', 'Fleet'], ['a', 'Fleet'], ['m', 'Sent'], ['b', 'Between agents'], ['s', 'Settings'], ['n', 'Needs you']]) {
    await page.keys('g', key);
    await page.says('h1', new RegExp(`^${heading}$`));
  }
  await page.open(a);
  await page.keys('?');
  await page.says('dialog', /Answer with that choice/);
  await page.keys('1', 'j', 'd', 'd', '2');
  assert.equal(await status(agent, a), 'open');
  await page.keys('Escape');
  assert.equal(await p.locator('dialog').count(), 0);
  assert.equal(await page.selected(), a);
  await page.keys('g', '1'); // a chord that is none
  await page.keys('x', '1');
  await until('the answer', () => status(agent, a), (s) => s === 'answered');
});

test('the palette finds commands and items', async ({ agent, page, p }) => {
  const a = await agent.ask('Rotate the signing key?');
  await agent.ask('Other');
  await page.row(a).waitFor();
  await page.keys('Control+k');
  await p.keyboard.type('rotate sign');
  await page.settled();
  await page.keys('Enter');
  await page.shown(a);
  assert.equal(await status(agent, a), 'open');
  await page.keys('Control+k');
  await p.keyboard.type('fleet');
  await page.settled();
  await page.keys('Enter');
  await page.says('h1', /^Fleet$/);
  await page.keys('Control+k');
  await p.keyboard.type('no such thing at all');
  await page.says('dialog', /Nothing by that name/);
  await page.keys('Enter', 'Escape');
  assert.equal(await p.locator('dialog').count(), 0);
});

test('search finds in every box and leaves again', async ({ hub, agent, page, p }) => {
  const a = await agent.ask('Rotate the signing key?');
  const b = await agent.ask('Unrelated');
  const n = await agent.notify('Rotation finished', { body: 'The signing key is new.' });
  await page.row(b).waitFor();
  await page.keys('/');
  await p.keyboard.type('signing');
  await until('both', () => page.ids(), (ids) => ids.length === 2 && ids.includes(a) && ids.includes(n));
  await page.says('header h1', /Search/);
  await p.click('[role=radio]:has-text("Notices")');
  await until('one', () => page.ids(), (ids) => ids.length === 1 && ids[0] === n);
  await p.click('[data-search] input');
  await p.keyboard.press('Control+a');
  await p.keyboard.type('"' + 'no" AND (such* OR');
  await page.says('.empty', /Nothing matches/);
  await page.keys('Escape');
  await until('the list', () => page.ids(), (ids) => ids.length === 2);
  assert.equal((await hub.call('GET', '/api/items?q=%22')).rows.length, 0);
});

test('keys of another layout, and letters in fields, are what they are', async ({ agent, page, p }) => {
  const [a] = [await agent.ask('A', { request: { permissions: { allow_edit: true } } }), await agent.ask('B')];
  await page.row(a).waitFor();
  await p.evaluate(() => {
    for (const type of ['keydown', 'keyup']) window.dispatchEvent(new KeyboardEvent(type, { key: 'о', code: 'KeyJ', bubbles: true }));
  });
  await page.shown(a);
  await page.keys('w');
  await p.keyboard.type('jk123 gg / ? дч');
  assert.equal(await p.inputValue('[data-decision] textarea'), 'jk123 gg / ? дч');
  // composing: keys belong to the input method
  await p.evaluate(() => {
    document.activeElement.blur();
    window.dispatchEvent(new KeyboardEvent('keydown', { key: '1', code: 'Digit1', isComposing: true, bubbles: true }));
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 'Process', code: 'Digit1', keyCode: 229, bubbles: true }));
  });
  await page.settled();
  assert.equal(await status(agent, a), 'open');
});

test('modifiers are not ignored: Ctrl+1, Alt+1 and Shift+D decide nothing', async ({ agent, page }) => {
  const a = await agent.ask('A');
  await page.row(a).waitFor();
  await page.open(a);
  await page.keys('Alt+1', 'Control+1', 'Meta+1', 'Shift+d', 'Shift+d', 'Control+d', 'Control+d');
  assert.equal(await status(agent, a), 'open');
});
