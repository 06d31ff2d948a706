// What a person who is new here ran into: each test is one thing that once could not be seen, reached or told apart.
import { Guarded } from './acs.mjs';
import { receiver } from './hub.mjs';
import { mapAgent } from './map.mjs';
import { assert, test, until } from './harness.mjs';

const receiverOf = () => receiver(204);
const small = { width: 900, height: 600 };
const focus = (p) => p.evaluate(() => { const e = document.activeElement; return e === document.body ? 'BODY' : e.dataset.list !== undefined ? 'list' : e.dataset.reading !== undefined ? 'reading' : (e.dataset.stop ?? e.tagName); });
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
  await page.keys('d');
  await page.p.focus('[data-list]');
  await page.keys('2');
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
  await page.says(`.row[data-id="${id}"]`, /1\/30/);
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
  await page.settled();
  assert.equal(await top(), 0);
  assert.ok(await page.row(first).isVisible());
  assert.equal(await page.selected(), ids[0]);
  await p.evaluate(() => { document.querySelector('[data-list]').scrollTop = 500; });
  await page.says('.above', /1 urgent above/);
  await agent.ask('Now too!', { priority: 'urgent' });
  await page.says('.above', /2 urgent above/);
  await p.click('.above button');
  await until('the top', top, (t) => t === 0);
  await until('the words to go', () => p.locator('.above').count(), (n) => n === 0);
});

test('compact rows show their priority', async ({ agent, page, p }) => {
  await p.evaluate(() => { document.documentElement.dataset.density = 'compact'; });
  const id = await agent.ask('Now!', { priority: 'urgent' });
  await page.row(id).waitFor();
  await page.settled();
  assert.ok(await p.evaluate(() => document.querySelector('.row .bar').getBoundingClientRect().height) > 20);
});

test('a page begins at its top, and the fleet is where it was left', { viewport: small, before: async ({ hub }) => { for (let i = 0; i < 40; i++) await hub.agent(`many/a${String(i).padStart(2, '0')}`); } }, async ({ page, p }) => {
  await page.keys('g', 'f');
  await p.locator('[data-stop="many/a30"]').scrollIntoViewIfNeeded();
  await page.settled();
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
  const id = await agent.ask('Gone?', { expires_at: new Date(Date.now() + 5000).toISOString() });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Expired (at|yesterday) \d\d:\d\d: nobody answered/);
});

test('an answer that waits for an address to be approved does not claim to be sent', { before: receiverOf }, async ({ agent, page, given, p }) => {
  const id = await agent.ask('Call back?', { request: { callback: { mode: 'push', url: given.url } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await page.says('.toast', new RegExp(`Answered “Ship to prod now”, not sent: approve ${given.host}`));
  await page.keys('g', 'd');
  await page.open(id);
  await page.says('[data-decision]', /Approve/);
  const colour = (at) => p.evaluate((s) => getComputedStyle(document.querySelector(s)).color, at);
  assert.equal(await colour('.row [class*="tone-wait"]'), await colour('[data-decision] .track > span'));
  await given.end();
});

test('what was said of an address that had to be approved goes once it is', { before: receiverOf }, async ({ hub, agent, page, given, p }) => {
  const id = await agent.ask('Call back?', { request: { callback: { mode: 'push', url: given.url } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('1');
  await page.says('.toast', /not sent: approve/);
  await hub.call('PUT', `/v1/agents/${encodeURIComponent(agent.id)}/policy`, { callback_hosts: [given.host] });
  await p.locator('.toast', { hasText: 'not sent' }).waitFor({ state: 'detached', timeout: 5_000 });
  await given.end();
});

test('how the hub is stays whole in a small window', { viewport: small, refusals: ['offline'] }, async ({ hub, page, p }) => {
  await hub.down();
  await page.says('nav', /trying/);
  const cut = await p.evaluate(() => [...document.querySelectorAll('nav .foot .text > *')].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.bottom > innerHeight || document.elementFromPoint(box.left + box.width / 2, box.bottom - 2)?.closest('.foot') === null;
  }).map((e) => e.textContent));
  assert.deepEqual(cut, []);
  await hub.up();
});

test('an answer that is sent again says so in its row', async ({ hub, agent, page }) => {
  const to = await receiver(503);
  await hub.call('PUT', `/v1/agents/${encodeURIComponent(agent.id)}/policy`, { callback_hosts: [to.host] });
  const id = await agent.ask('Call back?', { request: { callback: { mode: 'push', url: to.url } } });
  await hub.call('POST', `/api/items/${id}/resolve`, { resolution: 'answered', value: 'ship' });
  await until('an attempt', () => to.got.length);
  await page.keys('g', 'd');
  await page.row(id).waitFor();
  await page.says(`[data-id="${id}"]`, /retrying/);
  await to.end();
});

test('a title that is too high ends with a whole line and scrolls by key', { viewport: small }, async ({ agent, page, p }) => {
  const id = await agent.ask('W'.repeat(200));
  await page.row(id).waitFor();
  await page.open(id);
  const lines = await p.evaluate(() => { const h = document.querySelector('h2'); return h.clientHeight / parseFloat(getComputedStyle(h).lineHeight); });
  assert.ok(Math.abs(lines - Math.round(lines)) < 0.05, `${lines} lines`);
  await p.focus('h2[tabindex="0"]');
  await p.keyboard.press('ArrowDown');
  await until('it to scroll', () => p.evaluate(() => document.querySelector('h2').scrollTop), (y) => y > 0);
  assert.equal(await page.selected(), id);
});

test('of names that do not fit, the last ones are left out whole', { viewport: small, agent: false, before: ({ hub }) => hub.agent('a-very-long-agent-name/with-a-project-that-goes-on') }, async ({ given, page, p }) => {
  const id = await given.ask('Who?', { agent: { id: given.id, run_id: 'run_2026_a_long_one', runtime: 'cli', project: 'the-project-with-a-long-name' } });
  await page.row(id).waitFor();
  await page.open(id);
  for (const within of ['header .names', '.row .names']) {
    const seen = await p.evaluate((s) => {
      const box = document.querySelector(s).getBoundingClientRect();
      return [...document.querySelectorAll(`${s} > *`)].map((e) => e.getBoundingClientRect()).filter((b) => b.top < box.bottom - 2).map((b) => b.right <= box.right + 1);
    }, within);
    assert.deepEqual(seen, [true], within);
  }
});

test('text is laid out as it was written: tables, tasks, directions, code', { viewport: small }, async ({ agent, page, p }) => {
  const id = await agent.ask('Body?', { body: `| Name | Right | ${'Some column | '.repeat(12)}\n|---|---:|${'---|'.repeat(12)}\n| alphabeta | 1 | ${'longwordhere | '.repeat(12)}\n\n- [x] unit\n- plain\n\nEnglish.\n\nזהו טקסט.\n\n> ציטוט\n\n\`\`\`diff\n-old\n+new\n\`\`\`\n\n\`\`\`sh\nmake all\n\`\`\`\n\n\`\`\`\na\u202eb\n\`\`\`\n` });
  await page.row(id).waitFor();
  await page.open(id);
  await p.waitForSelector('.prose table[tabindex="0"]');
  await page.settled();
  const css = (at, name) => p.evaluate(([s, n]) => getComputedStyle(document.querySelector(s))[n], [at, name]);
  assert.ok(await p.evaluate(() => document.querySelector('.prose td').getBoundingClientRect().height < 34), 'a word is broken');
  assert.match(await css('.prose td:nth-child(2)', 'textAlign'), /right$/);
  assert.equal(await css('.prose li:has(.task-done)', 'listStyleType'), 'none');
  assert.equal(await css('.prose li:not(:has(.task-done))', 'listStyleType'), 'disc');
  assert.deepEqual(await p.evaluate(() => [...document.querySelectorAll('.prose > p')].map((e) => getComputedStyle(e).direction)), ['ltr', 'rtl']);
  assert.equal(await css('.prose blockquote', 'direction'), 'rtl');
  const [line, block] = await p.evaluate(() => ['.prose .gd', '.prose .framed pre'].map((s) => document.querySelector(s).getBoundingClientRect().width));
  assert.ok(line > block - 4, `${line} of ${block}`);
  assert.equal(await p.locator('.prose pre').count(), 3);
  assert.equal(await p.getByRole('button', { name: 'Copy the code' }).count(), 2, 'what holds a hidden character must not be copied');
  await p.getByRole('button', { name: 'Copy the code' }).last().click();
  await until('the code on the clipboard', () => p.evaluate(() => navigator.clipboard.readText()), (text) => text === 'make all');
});

test('a title in Hebrew begins at the right', async ({ agent, page, p }) => {
  const id = await agent.ask('האם להעלות?');
  await page.row(id).waitFor();
  await page.open(id);
  assert.ok(await p.evaluate(() => { const h = document.querySelector('h2'); const r = document.createRange(); r.selectNodeContents(h); return h.getBoundingClientRect().right - r.getBoundingClientRect().right < 4 && getComputedStyle(h.firstElementChild).direction === 'rtl'; }));
});

test('to decline has one name, and is told from saying no', async ({ agent, page }) => {
  const id = await agent.ask('Sure?', { request: { mode: 'confirm' } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('[data-decision]', /Decline…/);
  await page.keys('d');
  await page.says('[data-decision]', /not a no: to answer no, choose “Deny”/);
  assert.equal(await status(agent, id), 'open');
  await page.keys('Control+Enter');
  await until('it', () => status(agent, id), (s) => s === 'declined');
});

test('the names that are offered lie over the form and push nothing', async ({ page, p }) => {
  await page.keys('n');
  await p.waitForSelector('dialog [role="listbox"]');
  await page.settled();
  const title = () => p.evaluate(() => document.querySelector('dialog [data-title]').getBoundingClientRect().top);
  const open = await title();
  await page.keys('Enter');
  await p.waitForFunction(() => document.querySelector('dialog [role="listbox"]') === null);
  await page.settled();
  assert.ok(await title() - open < 60 && await title() >= open, `${open} → ${await title()}`);
});

test('what never arrived is written again', async ({ hub, agent, page, p }) => {
  const s = await hub.call('POST', '/v1/sessions', { label: 'nightly' }, { token: agent.token });
  const title = `Stop the deploy ${'and say so '.repeat(14)}`.trim();
  await hub.call('POST', '/v1/directives', { to: `agent:${agent.id}#${s.session?.id ?? s.session ?? s.id}`, title, body: 'It is **red**.', priority: 'high', tags: ['a', 'b'] });
  await hub.call('DELETE', `/v1/sessions/${s.session?.id ?? s.session ?? s.id}`);
  await page.keys('g', 'm');
  await p.locator('main [data-stop]').click();
  await page.says('main', /Bounced, never delivered/);
  assert.ok(await p.evaluate(() => { const t = document.querySelector('.directive .title'); return t.clientHeight > 25 && t.scrollWidth <= t.clientWidth; }), 'the title is cut');
  await p.click('text=Write it again…');
  await page.settled();
  assert.equal(await p.inputValue('dialog [data-title]'), title);
  assert.equal(await p.inputValue('dialog textarea'), 'It is **red**.');
  assert.equal(await p.inputValue('dialog [role="combobox"]'), agent.id);
  assert.ok(await p.getByRole('radio', { name: 'High' }).isChecked());
});

test('an agent’s name is refused in plain words', { refusals: [400, 422] }, async ({ page, p }) => {
  await page.keys('g', 'f');
  await p.click('text=Add an agent');
  const name = p.locator('input[aria-label="Name of the agent"]');
  await name.fill('my bot');
  await p.keyboard.press('Enter');
  await page.says('main', /A name cannot contain spaces\./);
  await name.fill('bot/');
  await p.keyboard.press('Enter');
  await page.says('main', /A name cannot begin or end with "\/"/);
});

test('a toast covers nothing, and ends with the view', { viewport: small }, async ({ agent, page, p }) => {
  const ids = [];
  for (let i = 0; i < 14; i++) ids.push(await agent.ask(`Ask ${i}`));
  await p.waitForSelector('.row[aria-setsize="14"]');
  await page.keys('End');
  await until('the last', () => page.selected(), (s) => s === ids[13]);
  await p.waitForSelector('[data-decision]');
  await page.settled();
  const decision = () => p.evaluate(() => document.querySelector('[data-decision]').getBoundingClientRect().top);
  const before = await decision();
  await page.keys('e');
  await page.says('.toast', /still open/);
  const over = await p.evaluate(() => {
    const t = document.querySelector('.toast').getBoundingClientRect();
    return ['.row.selected', '[data-decision]', '[data-search]', 'nav button'].filter((s) => [...document.querySelectorAll(s)].some((e) => {
      const b = e.getBoundingClientRect();
      return b.left < t.right && t.left < b.right && b.top < t.bottom && t.top < b.bottom;
    }));
  });
  assert.deepEqual(over, []);
  assert.equal(await decision(), before, 'the decision moved');
  await page.keys('g', 't');
  await until('it to end', () => p.locator('.toast').count(), (n) => n === 0);
});

test('the palette finds what the hub keeps, and offers only what can be done', async ({ agent, page, p }) => {
  const notice = await agent.notify('The zebra was fed');
  await page.keys('Control+k');
  await p.keyboard.type('zebra');
  await page.says('dialog', /The zebra was fed/);
  await page.keys('Enter');
  await page.shown(notice);
  assert.ok(await p.evaluate(() => document.activeElement.hasAttribute('data-reading')));
  await page.keys('Control+k');
  await p.keyboard.type('decline');
  await page.says('dialog', /Nothing by that name/);
});

test('a key that cannot act says why', async ({ agent, page, p }) => {
  const notice = await agent.notify('Fed');
  const soon = await agent.ask('Soon?', { expires_at: new Date(Date.now() + 40 * 60_000).toISOString() });
  await page.row(soon).waitFor();
  await page.open(soon);
  await page.keys('z');
  await page.says('dialog', /In an hour\s*expires at/);
  assert.equal(await p.locator('dialog button:disabled').count() > 0, true);
  await page.keys('2');
  assert.equal(await p.locator('dialog').count(), 1, 'it was snoozed past its end');
  await page.keys('1');
  await page.says('.toast', /Snoozed until/);
  await page.keys('g', 't');
  await page.open(notice);
  for (const key of ['1', 'w', 'd']) {
    await page.keys(key);
    await page.says('.toast', /A notice expects no answer/);
    await p.click('.toast [aria-label="Dismiss"]');
  }
  const gone = await agent.ask('Gone?');
  await agent.cancel(gone);
  await page.keys('g', 'd');
  await page.row(gone).waitFor();
  await page.open(gone);
  await page.keys('z');
  await page.says('.toast', /withdrawn already: there is nothing to snooze/);
});

test('while searching, the pane holds only what was found; after it, what was open before', async ({ agent, page, p }) => {
  const [a, b] = [await agent.ask('Apples?'), await agent.ask('Bananas?')];
  await page.row(b).waitFor();
  await page.open(a);
  await page.keys('/');
  await p.keyboard.type('bananas');
  await until('the pane to be cleared', () => p.locator('[data-decision]').count(), (n) => n === 0);
  await page.keys('Escape');
  await page.shown(a);
});

test('a form counts what is wrong below, and marks the wrong field that has the focus', { viewport: small }, async ({ agent, page, p }) => {
  const properties = { ...Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`f${i}`, { type: 'string', title: `Field ${i}` }])), day: { type: 'string', format: 'date', title: 'Day' } };
  const id = await agent.ask('Form?', { request: { mode: 'input', schema: { type: 'object', required: ['f0', 'f8'], properties } } });
  await page.row(id).waitFor();
  await page.open(id);
  await p.click('text=Send the answer');
  await page.says('[data-decision]', /1 more needs you/);
  await until('the first wrong field to have the focus', () => p.evaluate(() => document.activeElement.id), (at) => at === `${id}-f0`);
  const [outline, bad] = await p.evaluate(() => { const probe = document.createElement('p'); probe.style.color = 'var(--bad)'; document.body.append(probe); const c = getComputedStyle(probe).color; probe.remove(); return [getComputedStyle(document.activeElement).outlineColor, c]; });
  assert.equal(outline, bad);
  await p.getByRole('button', { name: 'Pick a date' }).scrollIntoViewIfNeeded();
  await p.locator('.picker').last().evaluate((e) => { e.value = '2026-03-04'; e.dispatchEvent(new Event('change', { bubbles: true })); });
  assert.equal(await p.inputValue(`[id="${id}-day"]`), '2026-03-04');
});

test('an agent’s page shows first what is open, and its count leads there', async ({ agent, page, p }) => {
  const open = await agent.ask('Still open');
  for (let i = 0; i < 9; i++) await agent.notify(`Notice ${i}`);
  await page.at(`#/agents/${encodeURIComponent(agent.id)}`);
  await page.says('main [data-stop]', /Notice/);
  assert.match(await p.locator('main [data-stop]').first().innerText(), /Still open/);
  await p.click('text=1 open item');
  await page.row(open).waitFor();
  await page.says('header', /deploybot/);
});

test('an editor that is closed gives the focus back to where it came from', async ({ agent, page, p }) => {
  const id = await agent.ask('Edit?', { request: { permissions: { allow_edit: true } } });
  await page.row(id).waitFor();
  await page.keys('j');
  await page.shown(id);
  await p.evaluate(() => document.querySelector('[data-list]').focus());
  for (const key of ['w', 'c', 'd']) {
    await page.keys(key, 'Escape');
    await until(`the list after ${key}`, () => focus(p), (f) => f === 'list');
  }
  await page.keys('Enter');
  await until('the message', () => focus(p), (f) => f === 'reading');
  for (const key of ['w', 'c', 'd']) {
    await page.keys(key, 'Escape');
    await until(`the message after ${key}`, () => focus(p), (f) => f === 'reading');
  }
  await page.keys('w');
  await p.click('text=Back to the choices');
  await until('the message after the button', () => focus(p), (f) => f === 'reading');
});

test('the focus never falls out of the page', async ({ agent, page, p }) => {
  const id = await agent.ask('Here?');
  await page.row(id).waitFor();
  const kept = async (what) => { await page.settled(); assert.notEqual(await focus(p), 'BODY', what); };
  await page.keys('/');
  await p.keyboard.type('here');
  await page.keys('Escape', 'Escape');
  await kept('leaving the search');
  for (const keys of [['g', 'f'], ['g', 's'], ['g', 'm'], ['g', 'b'], ['g', 'n']]) {
    await page.keys(...keys);
    await kept(keys.join(' '));
  }
  await page.keys('g', 'f', 'j', 'Enter');
  await page.says('h1', /deploybot/);
  await kept('an agent');
  await page.keys('Escape');
  await page.says('h1', /Fleet/);
  await kept('back from it');
});

test('what is read keeps its focus and its selection while the item is told anew', async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Told anew?', { body: 'See [the notes](https://example.org/), and these words.' });
  await page.row(id).waitFor();
  await page.open(id);
  await p.focus('.prose a');
  await p.evaluate(() => getSelection().selectAllChildren(document.querySelector('.prose p')));
  await until('it to be read', async () => (await hub.call('GET', `/api/items/${id}`)).unread, (unread) => !unread);
  await hub.call('POST', `/api/items/${id}/marks`, { starred: true });
  await p.waitForSelector('[data-item-pane] [aria-label="Remove the star"]');
  await page.settled();
  assert.deepEqual(await p.evaluate(() => [document.activeElement.innerText, getSelection().toString()]), ['the notes', 'See the notes example.org, and these words.']);
});

test('the focus stays in the page through the first run', { agent: false, hash: '' }, async ({ page, p }) => {
  await page.says('h1', /Agents ring/);
  const kept = async (what) => { await page.settled(); await until(`the focus, after ${what}`, () => focus(p), (f) => f !== 'BODY'); };
  await kept('the page as it came');
  await p.getByLabel('Name of the agent').focus();
  await p.keyboard.type('me/mine');
  await page.keys('Enter');
  await page.says('main', /Credentials/);
  await kept('adding an agent');
  await p.getByRole('button', { name: 'Ask me something' }).focus();
  await page.keys('Enter');
  await p.waitForSelector('[data-item-pane]');
  await kept('the practice question');
  await page.armed();
  await page.keys('1');
  await page.says('[data-item-pane]', /Practice: nothing was sent/);
  await kept('its answer');
  await p.getByRole('button', { name: 'Open the inbox' }).last().click();
  await p.waitForSelector('[data-list], .empty');
});

test('j reaches what waits for approval in the fleet', { before: ({ hub }) => hub.call('POST', '/v1/pairings', { agent_id: 'new/agent', note: 'here' }, { token: '' }) }, async ({ page, p }) => {
  await page.keys('g', 'f');
  await page.says('main', /new\/agent/);
  await page.keys('j');
  assert.match(await p.evaluate(() => document.activeElement.innerText), /asks for a credential/);
  await page.keys('j');
  assert.equal(await focus(p), 'deploybot/dev-team');
});

for (const viewport of [{ width: 1440, height: 900 }, small]) {
  test(`what is read and what is decided end at one edge, ${viewport.width} wide`, { viewport, before: ({ hub }) => Guarded.start(hub) }, async ({ agent, page, p, given: g }) => {
    const call = await g.call('Bash', { command: 'make' });
    const id = await agent.ask('Edges?', { body: 'long '.repeat(200), request: { permissions: { allow_edit: true } }, expires_at: new Date(Date.now() + 3e6).toISOString() });
    await page.row(id).waitFor();
    for (const [item, block] of [[id, '[data-choice]'], [call.id, '[data-decision] li']]) {
      await page.open(item);
      const edges = await p.evaluate((s) => ['header .line', '.body > *', s, '.foot > p'].map((each) => Math.round(document.querySelector(`[data-item-pane] ${each}`).getBoundingClientRect().right)), block);
      assert.equal(new Set(edges).size, 1, edges.join(' '));
    }
  });
}

test('a sensitive answer in one’s own words is masked', async ({ agent, page, p }) => {
  const id = await agent.ask('Token?', { sensitive: true, request: { permissions: { allow_edit: true } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.keys('w');
  const mask = () => p.evaluate(() => getComputedStyle(document.querySelector('[data-decision] textarea')).webkitTextSecurity);
  assert.equal(await mask(), 'disc');
  await p.click('[data-decision] button[aria-label="Show"]');
  assert.equal(await mask(), 'none');
});

test('a withdrawal is said once', async ({ agent, page }) => {
  const id = await agent.ask('Once?');
  await page.row(id).waitFor();
  await page.open(id);
  await agent.cancel(id);
  await page.says('[data-decision]', /Withdrawn by/);
  assert.equal((await page.decision().innerText()).match(/Withdrawn/g).length, 1);
});

test('signing in fits a very small window', { page: false, refusals: [401] }, async ({ hub, page, p }) => {
  await p.setViewportSize({ width: 450, height: 300 });
  await p.goto(`${hub.url}/`);
  await p.waitForSelector('h1');
  await page.settled();
  assert.ok(await p.evaluate(() => { const m = document.querySelector('main'); m.scrollTop = 0; return document.querySelector('main svg').getBoundingClientRect().top >= 0; }));
});

test('an inbox that nothing ever came to offers a question to try', async ({ page, p }) => {
  await page.says('.empty', /Nothing needs you/);
  await p.getByRole('button', { name: 'Try it with a practice question' }).focus();
  await p.keyboard.press('Enter');
  await until('the question', () => p.locator('.row[data-id]').count(), (n) => n === 1);
  await page.keys('j', 'Enter');
  await page.says('[data-item-pane]', /Practice/);
});

test('in a low window the entry of the open view is in sight, and a chip in a cut title is whole', { viewport: { width: 640, height: 420 } }, async ({ agent, page, p }) => {
  const id = await agent.ask(`Pay the invoice ${'\u200b'.repeat(20)} now`);
  await page.row(id).waitFor();
  assert.equal(await p.locator('.row .title .mark').first().evaluate((el) => getComputedStyle(el).display), 'inline-block'); // the ellipsis takes such a box whole
  await page.keys('g', 's');
  await page.says('h1', /Settings/);
  await until('the entry', () => p.evaluate(() => {
    const [here, foot] = [document.querySelector('nav [aria-current]'), document.querySelector('nav .foot')].map((el) => el.getBoundingClientRect());
    return here.top >= 0 && here.bottom <= foot.top;
  }));
});

test('a row of Done says what was answered, always in the same place', { before: async ({ hub, agent }) => {
  const gone = await receiver(410);
  await hub.call('PUT', `/v1/agents/${encodeURIComponent(agent.id)}/policy`, { callback_hosts: [gone.host] });
  const ids = [await agent.ask('Send it?'), await agent.ask('Call back?', { request: { callback: { mode: 'push', url: gone.url } } }), await agent.ask('Sure?', { request: { mode: 'confirm' } })];
  await hub.call('POST', `/api/items/${ids[0]}/resolve`, { resolution: 'answered', value: 'hold' });
  await hub.call('POST', `/api/items/${ids[1]}/resolve`, { resolution: 'answered', value: 'ship' });
  await hub.call('POST', `/api/items/${ids[2]}/resolve`, { resolution: 'declined' });
  return ids;
} }, async ({ page, p, given: ids }) => {
  await page.keys('g', 'd');
  await page.row(ids[1]).getByText('failed').waitFor();
  const words = await Promise.all(ids.map((id) => page.row(id).locator('.state').innerText()));
  assert.deepEqual(words, ['Hold for review', 'Ship to prod now', 'Declined']);
  const places = await Promise.all(ids.map((id) => page.row(id).locator('.state').evaluate((el) => [Math.round(el.getBoundingClientRect().right), el.getBoundingClientRect().top - el.closest('.row').getBoundingClientRect().top])));
  assert.ok(places.every((at) => at[1] === places[0][1]), `the words stand at ${places.join(' ')}`);
  assert.ok(p);
});

test('a row of a search says why it was found where its title does not', { before: async ({ agent }) => [await agent.ask('Which branch?', { body: 'Cut the **release** from main.' }), await agent.ask('The release?', { body: 'It is the release.' }), await agent.notify('Tagged', { tags: ['release'] })] }, async ({ page, p, given: ids }) => {
  await page.keys('/');
  await p.keyboard.type('relea');
  await page.row(ids[0]).locator('mark').waitFor();
  assert.equal(await page.row(ids[0]).locator('mark').innerText(), 'release');
  assert.match(await page.row(ids[0]).locator('.found').innerText(), /Cut the \*\*release\*\* from main/);
  assert.match(await page.row(ids[2]).locator('.found').innerText(), /tag: release/);
  assert.equal(await page.row(ids[1]).locator('mark').count(), 0);
  const [mark, row] = await Promise.all([page.row(ids[0]).locator('mark').boundingBox(), page.row(ids[0]).boundingBox()]);
  assert.ok(mark.x + mark.width < row.x + row.width - 60, 'what was found is cut off');
});

test('compact rows say who asks, that an agent waits, and end at one edge', { before: async ({ hub, agent }) => {
  const ids = [await agent.ask('One?'), await agent.ask('Two?', { expires_at: new Date(Date.now() + 3_000_000).toISOString() })];
  void fetch(`${hub.url}/v1/messages/${ids[0]}?wait=30`, { headers: { Authorization: `Bearer ${agent.token}` } }).catch(() => undefined);
  return [...ids, await agent.ask('Three?')];
} }, async ({ page, p, given: ids }) => {
  await p.evaluate(() => { document.documentElement.dataset.density = 'compact'; });
  await page.row(ids[0]).getByText('waiting').waitFor();
  for (const id of ids) assert.ok(await page.row(id).locator('.from').isVisible(), 'who asks is hidden');
  assert.ok(await page.row(ids[0]).getByText('waiting').isVisible());
  const ends = await Promise.all(ids.map((id) => page.row(id).evaluate((el) => Math.round(Math.max(...[...el.querySelectorAll('.tail *, .state *, time')].map((x) => x.getBoundingClientRect().right))))));
  assert.deepEqual(ends, ends.map(() => ends[0]), 'the rows end at different edges');
});

test('what scrolls shows with two pixels all around that it has the focus', async ({ agent, page, p }) => {
  const id = await agent.ask('Read this?', { body: 'A text.' });
  await page.row(id).waitFor();
  await page.open(id);
  for (const scheme of ['light', 'dark']) {
    await p.emulateMedia({ colorScheme: scheme });
    await p.keyboard.press('Tab');
    await p.locator('[data-reading]').focus();
    await page.settled();
    const ring = await p.locator('[data-reading]').evaluate((el) => { const s = getComputedStyle(el); return [s.outlineStyle, s.outlineWidth, s.outlineOffset, s.outlineColor === getComputedStyle(document.querySelector('.brand')).color]; });
    assert.deepEqual(ring, ['solid', '2px', '-2px', true], scheme);
  }
});

test('in a wide window a question and a call are read and decided at one width', { viewport: { width: 1920, height: 1080 }, before: async ({ hub, agent }) => {
  const g = await Guarded.start(hub);
  const call = await g.call('Bash', { command: 'make' });
  call.answer.catch(() => {});
  return { call: call.id, ask: await agent.ask('Ship it?') };
} }, async ({ page, p, given }) => {
  const edges = async (id) => {
    await page.open(id);
    return p.evaluate(() => ['[data-decision] [data-choice]', '[aria-label="Archive"]'].map((s) => Math.round(document.querySelector(`[data-item-pane] ${s}`)?.getBoundingClientRect().left ?? -1)));
  };
  assert.deepEqual(await edges(given.call), await edges(given.ask));
});

test('a low rail says how many views are below its edge', { viewport: { width: 640, height: 400 } }, async ({ page, p }) => {
  await page.settled();
  const more = p.locator('nav .more');
  assert.match(await more.innerText(), /^[1-9]/);
  await more.click();
  await p.evaluate(() => document.querySelector('nav').scrollTo(0, 9999));
  await page.settled();
  assert.equal(await more.count(), 0);
});

test('the page of an agent of pi or MAP leads to what there is of it, and says what proves it', { before: async ({ hub }) => {
  await mapAgent(hub, 'planner');
  const { id } = await hub.call('POST', '/api/pi', { folder: hub.data });
  return { id, pi: await until('the agent', async () => (await hub.call('GET', '/v1/agents')).agents.find((a) => a.protocol === 'pi')?.agent_id) };
} }, async ({ page, p, given: g }) => {
  await page.at('#/agents/map%2Fplanner');
  await page.says('main', /over MAP/);
  assert.doesNotMatch(await p.locator('main').innerText(), /Guardian/);
  await page.at(`#/agents/${encodeURIComponent(g.pi)}`);
  await page.says('main', /over pi’s RPC[^]*started by this hub/);
  assert.doesNotMatch(await p.locator('main').innerText(), /Guardian|own secret/);
  await p.locator(`main [data-stop="${g.id}"]`).click();
  await page.says('main', /End it…/);
  assert.equal(await p.evaluate(() => location.hash), `#/pi/${encodeURIComponent(g.id)}`);
});
