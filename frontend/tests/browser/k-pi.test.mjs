import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, figure, test, until } from './harness.mjs';

const withPi = { before: async ({ hub }) => ({ id: (await hub.call('POST', '/api/pi', { folder: hub.data })).id }) };
const tell = (hub, id, text) => hub.call('POST', `/api/pi/${id}/commands`, { text });
const asks = async (hub) => (await hub.call('GET', '/v1/messages?status=open&protocol=pi')).messages;

test('a session is started, told, stopped and ended from the page', { refusals: [409, 422] }, async ({ hub, page, p }) => {
  await page.keys('g', 'p');
  await page.says('main', /No pi has run under this hub yet/);
  await p.click('text=New session');
  await p.fill('#pi-folder', '/no/such/folder');
  await p.click('dialog >> text=Start');
  await page.says('dialog [role=alert]', /folder/);
  await p.fill('#pi-folder', hub.data);
  await p.click('dialog >> text=Start');
  await p.fill('textarea', 'hello there');
  await p.keyboard.press('Enter');
  await page.says('[role=log]', /You said: hello there/);
  await page.says('header', /idle/);
  await page.says('header', /12 % of the context/);
  assert.equal(await p.locator('[role=log] img').count(), 0);
  await p.fill('textarea', '/fi');
  await page.says('#pi-fits', /\/fix-tests/);
  await p.keyboard.press('Tab');
  assert.equal(await p.inputValue('textarea'), '/fix-tests ');
  await p.fill('textarea', '/login');
  await p.keyboard.press('Enter');
  await page.says('form [role=alert]', /own terminal alone/);
  await p.fill('textarea', 'SLOW');
  await p.keyboard.press('Enter');
  await page.says('header', /at work/);
  await p.click('text=Stop');
  await page.says('header', /idle/);
  await p.click('text=End it');
  await page.says('dialog', /Whatever it started and that still runs ends with it/);
  await p.click('dialog >> text=Cancel');
  await page.says('header', /idle/);
  await p.click('text=End it');
  await p.click('dialog >> text=End it now');
  await page.says('header', /ended by you/);
  await until('no composer', async () => (await p.locator('textarea').count()) === 0);
});

test('a start that was cancelled leads nowhere, and leaves nothing that runs', async ({ hub, page, p }) => {
  let release;
  const held = new Promise((done) => { release = done; });
  await p.route('**/api/pi', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  });
  await page.keys('g', 'p');
  await p.click('text=New session');
  await p.fill('#pi-folder', hub.data);
  await p.click('dialog >> text=Start');
  const state = async () => (await hub.call('GET', '/api/pi')).sessions[0]?.state;
  await until('it runs', state, (s) => s === 'idle');
  for (const key of ['Escape', 'g', 'n']) await p.keyboard.press(key);
  await until('another page', () => p.evaluate(() => location.hash), (h) => h.includes('needs'));
  release();
  await until('it has ended', state, (s) => s === 'exited');
  await page.says('body', /that was starting has been ended/);
  assert.match(await p.evaluate(() => location.hash), /needs/);
});

test('an answer without a word is one', withPi, async ({ hub, page, given }) => {
  await tell(hub, given.id, 'ASK {"method":"input","title":"Name?"}');
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await page.open(m.id);
  await page.keys('w', 'Control+Enter');
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /"value":""/);
});

test('in a low window the field and Send stay in sight below what is suggested', { ...withPi, viewport: { width: 640, height: 420 } }, async ({ page, p, given }) => {
  await page.at(`#/pi/${given.id}`);
  await page.says('header', /idle/);
  await p.fill('textarea', '/');
  await page.says('#pi-fits', /\/fix-tests/);
  for (const part of ['textarea', 'button[type=submit]']) {
    const box = await p.locator(part).boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 420, `${part}: ${JSON.stringify(box)}`);
  }
  await p.locator('textarea').press('ArrowUp'); // the last of them
  assert.ok(await p.locator('#pi-fits [aria-selected=true]').evaluate((el) => el.getBoundingClientRect().bottom <= el.parentElement.getBoundingClientRect().bottom + 1));
});

test('a question leads from the transcript to the inbox and back, with its call', withPi, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'ASK {"method":"confirm","title":"Really delete it?","message":"rm -rf build"}');
  await page.at(`#/pi/${given.id}`);
  await page.says('header', /waits for you/);
  await page.says('[role=log] .marked', /rm -rf build/);
  await p.click('[role=log] >> text=Answer it');
  await page.says('[data-item-pane]', /Really delete it\?/);
  await page.says('[data-item-pane]', /rm -rf build/);
  await p.click('[data-item-pane] >> text=All its steps');
  await page.says('[role=log]', /Call|bash/);
  const [m] = await asks(hub);
  await hub.call('POST', `/v1/messages/${m.id}/resolve`, { resolution: 'answered', value: 'approve' });
  await page.says('[role=log]', /"confirmed":true/);
  await page.says('header', /idle/);
});

test('a question that pi did not wait for says so, and leads to its place', { ...withPi, timeout: 60_000 }, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'ASK {"method":"confirm","title":"Quick?","message":"x","timeout":1500}');
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await until('its end', async () => (await hub.call('GET', `/v1/messages/${m.id}`)).status, (s) => s === 'expired');
  await page.keys('g', 'd');
  await page.open(m.id);
  await page.says('[data-item-pane]', /pi went on without you \(counted as no\)/);
  for (let i = 0; i < 130; i++) await tell(hub, given.id, `message ${i}`); // its place is far from the end by now
  await p.click('[data-item-pane] >> text=All its steps');
  await page.says('[role=log] .marked', /"cancelled":true/);
  await until('it is in view', () => p.locator('[role=log] .marked').isVisible());
});

test('a question that no call asks leads to its session, too', withPi, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'SHOW {"method":"confirm","title":"Asked by a command"}');
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await page.open(m.id);
  await p.click('[data-item-pane] >> text=Its session');
  await page.says('[role=log]', /Asked by a command/);
});

test('what a tool says is shown as a terminal would, and obeys nothing', withPi, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'RUN \u001b[31mred\u001b[0m <b>bold?</b> \u001b]8;;http://evil.example\u0007link\u001b]8;;\u0007 \u202eesrever');
  await page.at(`#/pi/${given.id}`);
  await page.says('.tool', /red <b>bold\?<\/b> link/);
  assert.equal(await p.locator('.tool .red').innerText(), 'red');
  assert.equal(await p.locator('.tool a, .tool .text b').count(), 0);
  assert.ok(await p.locator('.tool .mark').count() > 0);
  await page.says('.tool [aria-label="The change"]', /added\s+\+two/);
  await p.click('[role=log] >> text=Thinking');
  await page.says('[role=log]', /Let me \*\*think\*\*/);
});

test('a long transcript opens at its end, is read back and searched', { ...withPi, timeout: 60_000 }, async ({ hub, page, p, given }) => {
  for (let i = 0; i < 130; i++) await tell(hub, given.id, i === 7 ? 'needle seven' : `message ${i}`);
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /You said: message 129/);
  assert.ok(!(await p.innerText('[role=log]')).includes('needle seven'));
  await p.fill('[data-filter] input', 'needle');
  await page.says('.found', /needle seven/);
  await p.click('.found >> text=Show where >> nth=-1');
  await until('the row', () => p.locator('[role=log] >> text=needle seven').first().isVisible());
  await p.click('text=To the newest');
  await until('the end', () => p.locator('[role=log] >> text=message 129').last().isVisible());
});

test('the model and how much it thinks are chosen by key', { ...withPi, refusals: [409] }, async ({ page, p, given }) => {
  await page.at(`#/pi/${given.id}`);
  await page.says('header', /idle/);
  assert.equal(await p.inputValue('[data-pi-model]'), 'stub/stub-1');
  await p.focus('[role=log], main.page');
  await page.keys('t');
  await until('the focus', () => p.evaluate(() => document.activeElement?.matches('[data-pi-thinking]')));
  await p.selectOption('[data-pi-thinking]', 'high');
  await until('it thinks more', async () => (await p.inputValue('[data-pi-thinking]')) === 'high');
  await page.keys('Escape', 'm');
  await until('the focus', () => p.evaluate(() => document.activeElement?.matches('[data-pi-model]')));
  await p.selectOption('[data-pi-model]', 'stub/stub-2');
  await until('the levels of the other', async () => (await p.innerText('[data-pi-thinking]')).includes('max'));
  await p.selectOption('[data-pi-model]', 'stub/gone');
  await page.says('header [role=alert]', /Model not found: stub\/gone/);
  assert.equal(await p.inputValue('[data-pi-model]'), 'stub/stub-2');
  await page.keys('Escape', 'g', 'p');
  await p.click('text=New session');
  await p.click('#pi-model');
  await until('models to choose from', async () => (await p.locator('#pi-model-names li').count()) >= 2);
  await page.keys('ArrowDown', 'Enter');
  assert.match(await p.inputValue('#pi-model'), /^stub\//);
  await page.keys('ArrowDown', 'Escape');
  assert.equal(await p.locator('dialog').count(), 1, 'Escape closed more than the list');
  await page.keys('Escape');
  await until('the dialog to go', () => p.locator('dialog').count(), (n) => n === 0);
});

test('a session is forked at a prompt, by its button and by key, and followed', withPi, async ({ hub, page, p, given }) => {
  for (const text of ['first words', 'second words', 'third words']) await tell(hub, given.id, text);
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /You said: third words/);
  await p.click('article.user:has-text("third words") >> text=Fork here');
  await until('the other session', () => p.evaluate((id) => location.hash.startsWith(`#/pi/${id}f`), given.id));
  await page.says('[role=log]', /second words/);
  assert.ok(!(await p.innerText('[role=log]')).includes('third words'));
  assert.equal(await p.inputValue('textarea'), 'third words');
  await until('the focus', () => p.evaluate(() => document.activeElement?.matches('[data-pi-write]')));
  await page.keys('Escape', 'f');
  await page.says('dialog', /first words/);
  await p.keyboard.type('first');
  await p.keyboard.press('Enter');
  await until('one more', () => p.evaluate((id) => location.hash === `#/pi/${id}ff`, given.id));
  await until('the prompt', async () => (await p.inputValue('textarea')) === 'first words');
  await page.at(`#/pi/${given.id}`);
  await page.says('header', /another session took its place/);
  await p.click('text=Go to it');
  await until('the last one', () => p.evaluate((id) => location.hash === `#/pi/${id}ff`, given.id));
  await page.at(`#/pi/${given.id}`);
  await p.click('text=Take it up again');
  await page.says('header', /idle/);
  await page.says('[role=log]', /You said: third words/);
});

test('what extensions show and put forward is there, and what waits is forgotten', withPi, async ({ hub, page, p, given }) => {
  const show = (r) => tell(hub, given.id, `SHOW ${JSON.stringify(r)}`);
  await show({ method: 'setStatus', statusKey: 'mode', statusText: 'careful' });
  await show({ method: 'setWidget', widgetKey: 'plan', widgetLines: ['1. look', '2. leap'] });
  await show({ method: 'setWidget', widgetKey: 'foot', widgetLines: ['at the foot'], widgetPlacement: 'belowEditor' });
  await show({ method: 'setTitle', title: 'Mending the tests' });
  await show({ method: 'notify', message: 'Careful now', notifyType: 'warning' });
  await show({ method: 'set_editor_text', text: 'write tests first' });
  await page.at(`#/pi/${given.id}`);
  await page.says('h1', /Mending the tests/);
  await page.says('header .chip', /careful/);
  assert.equal(await p.getAttribute('header .chip', 'title'), 'mode');
  await page.says('[role=log] .warning', /Careful now/);
  const order = await p.evaluate(() => [...document.querySelectorAll('.widget, form.composer')].map((e) => e.textContent?.includes('leap') ? 'above' : e.textContent?.includes('foot') ? 'below' : 'composer'));
  assert.deepEqual(order, ['above', 'composer', 'below']);
  await p.fill('textarea', 'my own words');
  await page.says('form', /Put forward by an extension: write tests first/);
  assert.equal(await p.inputValue('textarea'), 'my own words');
  await p.click('text=Use it');
  assert.equal(await p.inputValue('textarea'), 'write tests first');
  await p.fill('textarea', 'SLOW');
  await p.keyboard.press('Enter');
  await page.says('header', /at work/);
  await p.fill('textarea', 'and then this');
  await p.keyboard.press('Enter');
  await page.says('form', /Told when it is done: and then this/);
  await p.click('text=Forget it');
  await until('nothing waits', async () => !(await p.innerText('form')).includes('and then this'));
  await p.keyboard.press('Control+.');
  await page.says('header', /idle/);
});

test('a session that pi itself keeps is taken up, and pictures go with a prompt', async ({ hub, page, p }) => {
  const kept = join(hub.data, 'pi-sessions');
  mkdirSync(kept);
  writeFileSync(join(kept, '2035-09-13_x.jsonl'), [{ type: 'session', version: 3, id: 'x', cwd: hub.data }, { type: 'message', message: { role: 'user', content: 'mend the parser' } }].map((r) => `${JSON.stringify(r)}\n`).join(''));
  await page.keys('g', 'p');
  await p.click('text=New session');
  await p.fill('#pi-folder', hub.data);
  await page.says('dialog #pi-file', /mend the parser/);
  await p.selectOption('#pi-file', { index: 1 });
  await p.click('dialog >> text=Start');
  await page.says('header', /idle/);
  const [s] = (await hub.call('GET', '/api/pi')).sessions;
  assert.deepEqual(s.args.slice(0, 2), ['--session', join(kept, '2035-09-13_x.jsonl')]);
  await p.setInputFiles('form input[type=file]', { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('iVBORw0KGgo=', 'base64') });
  await page.says('form', /dot\.png/);
  await p.fill('textarea', 'look at this');
  await p.keyboard.press('Enter');
  await page.says('[role=log]', /look at this \[image\/png 12\]/);
  await until('the picture is gone', async () => !(await p.innerText('form')).includes('dot.png'));
});

test('a session that pi itself keeps is read without running it', async ({ hub, page, p }) => {
  const kept = join(hub.data, 'pi-sessions');
  mkdirSync(kept);
  writeFileSync(join(kept, '2035-09-13_x.jsonl'), [{ type: 'session', version: 3, id: 'x', cwd: hub.data }, { type: 'message', id: '1', parentId: null, message: { role: 'user', content: 'mend the parser' } },
    { type: 'message', id: '2', parentId: '1', message: { role: 'assistant', content: [{ type: 'text', text: 'It is **mended**.' }] } }].map((r) => `${JSON.stringify(r)}\n`).join(''));
  await page.keys('g', 'p');
  await p.click('text=New session');
  await p.fill('#pi-folder', hub.data);
  await page.says('dialog #pi-file', /mend the parser/);
  await p.selectOption('#pi-file', { index: 1 });
  await p.click('dialog >> text=Only read it');
  await page.says('[role=log]', /mend the parser[^]*It is mended\./);
  await page.says('header', /read from the file that pi keeps of it/);
  await page.says('header', /Take it up again/);
});

test('an answer of a thousand pieces a second grows in its place', { ...withPi, timeout: 60_000 }, async ({ hub, page, p, given }) => {
  await page.at(`#/pi/${given.id}`);
  await page.says('header', /idle/);
  await p.evaluate(() => { // from its first word to its last it is the same element, and never says less than it did
    window.watched = { row: null, most: 0, less: 0, times: 0 };
    new MutationObserver(() => {
      const row = window.watched.row ??= document.querySelector('[role=log] .assistant');
      const n = row?.querySelector('.body')?.textContent.length ?? 0;
      if (n === window.watched.most) return;
      if (n < window.watched.most) window.watched.less++;
      window.watched.most = n;
      window.watched.times++;
    }).observe(document.querySelector('main'), { childList: true, subtree: true, characterData: true });
  });
  await tell(hub, given.id, 'STREAM 5000');
  await until('the end', async () => (await p.innerText('[role=log] .assistant')).includes('END'), (v) => v, 30_000);
  const { same, less, times } = await p.evaluate(() => ({ same: document.querySelector('[role=log] .assistant') === window.watched.row, less: window.watched.less, times: window.watched.times }));
  assert.ok(same);
  assert.equal(less, 0);
  assert.ok(times > 2, `it grew ${times} times`);
  await until('the end is in view', () => p.evaluate(() => { const log = document.querySelector('[role=log]'); return log.scrollTop + log.clientHeight >= log.scrollHeight - 24; }));
});

test('ten thousand rows are read back without a stutter', { ...withPi, timeout: 120_000 }, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'MANY 10000');
  await until('all of them', async () => (await hub.call('GET', `/api/pi/${given.id}`)).session.rows >= 10_000, (v) => v, 60_000);
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /answer 9999/);
  const slow = await p.evaluate(async () => {
    const log = document.querySelector('[role=log]');
    const took = [];
    let last = performance.now();
    for (let i = 0; i < 240; i++) {
      log.scrollTop -= 400;
      await new Promise((then) => requestAnimationFrame(then));
      const now = performance.now();
      took.push(now - last);
      last = now;
    }
    took.sort((a, b) => a - b);
    return { p50: took[120], p95: took[228], rows: document.querySelectorAll('[role=log] article').length };
  });
  assert.ok(slow.rows <= 1000, `${slow.rows} rows in the page`);
  assert.ok(slow.p50 < 100, JSON.stringify(slow)); // a page of older rows takes longer, now and then
  figure(`frames while reading back: ${slow.p50.toFixed(1)} ms p50, ${slow.p95.toFixed(1)} ms p95`);
});

/** Whether the row that was gone to is in view, and stays there: what is around it is measured only once it is near. */
const inView = async (page) => {
  const place = () => page.p.evaluate(() => {
    const log = document.querySelector('[role=log]').getBoundingClientRect();
    const at = document.querySelector('[role=log] .marked')?.getBoundingClientRect();
    return at !== undefined && at.top < log.bottom - 10 && at.bottom > log.top + 10 && at.top >= log.top - 1 ? at.top : null;
  });
  await page.settled();
  const first = await place();
  await page.settled();
  const then = await place();
  return first !== null && then !== null && Math.abs(first - then) < 2;
};
const atEnd = (p) => p.evaluate(() => { const log = document.querySelector('[role=log]'); return log.scrollTop + log.clientHeight >= log.scrollHeight - 2; });

test('what was found, and the place of a question, come into view and are marked, in a transcript of many sizes', { ...withPi, timeout: 120_000 }, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'ASK {"method":"confirm","title":"Really?","message":"x"}');
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await hub.call('POST', `/v1/messages/${m.id}/resolve`, { resolution: 'answered', value: 'approve' });
  await tell(hub, given.id, 'TALL 700');
  await until('all of them', async () => (await hub.call('GET', `/api/pi/${given.id}`)).session.rows >= 700, (v) => v, 60_000);
  await page.at(`#/pi/${given.id}`);
  for (const n of [350, 523, 61]) {
    await p.fill('[data-filter] input', `tall ${n}.`);
    await page.says('.found', new RegExp(`tall ${n}\\.`));
    await p.click('.found >> text=Show where >> nth=-1');
    await page.says('[role=log] .marked', new RegExp(`^\\s*pi[^]*tall ${n}\\.`));
    await until(`answer ${n} in view`, () => inView(page));
  }
  await p.click('text=To the newest');
  await until('the end', () => atEnd(p));
  assert.equal(await p.locator('[role=log] .marked').count(), 0);
  await page.keys('Escape', 'g', 'd');
  await page.open(m.id);
  await p.click('[data-item-pane] >> text=All its steps');
  await page.says('[role=log] .marked', /"confirmed":true/);
  await until('its place', () => inView(page));
});

test('what is found in a long answer is marked where it stands', withPi, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, `${'word '.repeat(3000)} needle ${'word '.repeat(500)}`);
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /needle/);
  await p.fill('[data-filter] input', 'NEEDLE');
  await page.says('.found', /needle/);
  await until('the mark', () => p.evaluate(() => {
    const [range] = CSS.highlights.get('found') ?? [];
    const hit = range?.startContainer.parentElement.closest('.hit')?.getBoundingClientRect();
    const at = range?.getBoundingClientRect();
    return range?.toString() === 'needle' && at.top >= hit.top && at.bottom <= hit.bottom;
  }));
  await p.fill('[data-filter] input', '');
  await until('no mark', () => p.evaluate(() => !CSS.highlights.has('found')));
});

test('the end of what a tool says is shown while it says it', withPi, async ({ hub, page, p, given }) => {
  await page.at(`#/pi/${given.id}`);
  await tell(hub, given.id, 'LINES 60');
  await page.says('.tool .frame', /line 45/);
  const visible = () => p.evaluate(() => { const f = document.querySelector('.tool .frame'); return f.scrollTop + f.clientHeight >= f.scrollHeight - 4; });
  await until('its end', visible);
  await page.says('.tool .frame', /line 60/);
  await until('its end', visible);
  await p.evaluate(() => { document.querySelector('.tool .frame').scrollTop = 0; });
  await hub.call('POST', `/api/pi/${given.id}/stop`);
  await page.says('.tool', /broken off/);
  assert.equal(await p.evaluate(() => document.querySelector('.tool .frame').scrollTop), 0);
});

test('a picture does not push the end out of view, and neither does looking further up keep away what one says', withPi, async ({ hub, page, p, given }) => {
  for (let i = 0; i < 12; i++) await tell(hub, given.id, `message ${i}`);
  await tell(hub, given.id, 'PICTURE');
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /You said: PICTURE/);
  await until('the picture', () => p.evaluate(() => document.querySelector('[role=log] img')?.naturalHeight === 400));
  await until('the end', () => atEnd(p));
  assert.equal(await p.locator('text=To the newest').count(), 0);
  await tell(hub, given.id, 'PICTURE');
  await until('another picture', async () => (await p.locator('[role=log] img').count()) === 2);
  await until('the end', () => atEnd(p));
  await p.evaluate(() => { document.querySelector('[role=log]').scrollTop = 0; });
  await page.says('main', /To the newest/);
  await p.fill('textarea', 'my own words');
  await p.keyboard.press('Enter');
  await page.says('[role=log]', /You said: my own words/);
  await until('the end', () => atEnd(p));
});

test('what is being written to a session is there when one comes back to it', withPi, async ({ hub, page, p, given }) => {
  await page.at(`#/pi/${given.id}`);
  const go = (id) => p.evaluate((to) => { location.hash = `#/pi/${to}`; }, id);
  await p.fill('textarea', 'half a thou');
  await p.setInputFiles('form input[type=file]', { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('iVBORw0KGgo=', 'base64') });
  await page.says('form', /dot\.png/);
  const other = await hub.call('POST', '/api/pi', { folder: hub.data });
  await go(other.id);
  await until('nothing is written there', async () => (await p.inputValue('textarea')) === '');
  await go(given.id);
  await until('it is there', async () => (await p.inputValue('textarea')) === 'half a thou');
  await page.says('form', /dot\.png/);
});

test('an answer of a dialog that no call asks says that pi has it, and its command keeps nobody waiting', withPi, async ({ hub, page, p, given }) => {
  await page.at(`#/pi/${given.id}`);
  await p.fill('textarea', '/ponder ');
  const began = Date.now();
  await p.keyboard.press('Enter');
  await until('the composer is free', async () => (await p.inputValue('textarea')) === '');
  assert.ok(Date.now() - began < 5000, `after ${Date.now() - began} ms`);
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await hub.call('POST', `/v1/messages/${m.id}/resolve`, { resolution: 'answered', value: 'approve' });
  await page.keys('Escape', 'g', 'd');
  await page.open(m.id);
  await page.says('[data-item-pane]', /Given to the agent, which waited for it/);
  assert.ok(!(await p.innerText('[data-item-pane]')).includes('Waits for the agent'));
});

test('a call says that it waits for leave, and who did not give it, and why', withPi, async ({ hub, page, given }) => {
  const call = { tool: 'bash', call: 'call-1', input: { command: 'rm -rf build && ls > f' } };
  await tell(hub, given.id, `ASK ${JSON.stringify({ method: 'input', title: `deskbell-gate/1 ${JSON.stringify(call)}` })}`);
  await page.at(`#/pi/${given.id}`);
  await page.says('.tool', /waits for your leave/);
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await hub.call('POST', `/v1/messages/${m.id}/resolve`, { resolution: 'answered', value: 'deny', comment: 'not today' });
  await page.says('.tool', /denied[^]*Denied by you: not today/);
});

test('a question of an extension offers no reason and calls no dismissal a denial', withPi, async ({ hub, page, p, given }) => {
  await tell(hub, given.id, 'ASK {"method":"select","title":"Which colour?","options":["red","deny"]}');
  const [m] = await until('the question', () => asks(hub), (all) => all.length > 0);
  await page.open(m.id);
  await page.says('[data-item-pane]', /rm -rf build/);
  assert.doesNotMatch(await p.innerText('[data-item-pane]'), /reason|deny, and|comment|your leave/i);
  await page.armed();
  await page.keys('d');
  await page.says('[data-decision]', /Pi is told only that the question was dismissed, and goes on without an answer/);
  assert.equal(await p.locator('[data-decision] textarea').count(), 0);
  await p.keyboard.press('Control+Enter');
  await until('it is declined', async () => (await hub.call('GET', `/v1/messages/${m.id}`)).status, (s) => s === 'declined');
  await page.keys('g', 'd');
  await page.open(m.id);
  await page.says('[data-decision]', /Declined/);
  assert.doesNotMatch(await p.innerText('[data-item-pane]'), /Denied|reason/);
  assert.match(await p.innerText('[data-list]'), /Declined/);
});

test('what failed and was tried again says so', withPi, async ({ hub, page, given }) => {
  await tell(hub, given.id, 'RETRY');
  await page.at(`#/pi/${given.id}`);
  await page.says('[role=log]', /503 overloaded \(it was tried again\)/);
});
