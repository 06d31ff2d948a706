import { assert, test, until } from './harness.mjs';

// What an agent writes stays inert and visible. The harness fails any of these on a console error, a breach of the content
// policy, or a request that leaves the hub.

const markup = `<script>window.hit=1</script><img src=x onerror="window.hit=2"><svg onload=window.hit=3></svg>
<iframe src="javascript:window.hit=4"></iframe><a href="javascript:window.hit=5">click</a><style>*{display:none}</style>
<form action="https://evil.example"><button>go</button></form><meta http-equiv=refresh content="0;url=https://evil.example"><base href="https://evil.example/">
<div style="position:fixed;inset:0">over</div><details open ontoggle=window.hit=6>x</details><math><mtext></p><img src=x onerror=window.hit=7></math>

![pixel](https://evil.example/p.png) ![data](data:image/svg+xml;base64,PHN2Zy8+)
[js](javascript:window.hit=8) [data](data:text/html,x) [file](file:///etc/passwd) [rel](/v1/settings) [proto](//evil.example)
[https://bank.example](https://evil.example/) <https://p\u0430ypal.com/> [ok](https://example.org/a?b=c)
`;

test('markup in every field stays text', async ({ hub, agent, page, p }) => {
  const bad = '<img src=x onerror=window.hit=9><b>bold</b>&lt;';
  const ask = await agent.ask(`Title ${bad}`, { body: markup, tags: ['<i>tag</i>'], context: [
    { kind: 'text', text: markup }, { kind: 'data', data: { '<b>key</b>': bad, __proto__: 1, list: ['</script><script>window.hit=10</script>'] } },
    { kind: 'file', file: { uri: 'https://evil.example/"><script>window.hit=11</script>', name: bad, mime_type: 'text/html' } },
  ], request: { mode: 'select', options: [{ value: bad, label: bad, description: markup.slice(0, 200) }, { value: 'b', label: '{@html "x"} {{7*7}} ${7*7}' }] } });
  const input = await agent.ask('Form', { request: { mode: 'input', schema: { type: 'object', properties: { [bad]: { type: 'string', title: bad, description: markup.slice(0, 300) }, pick: { enum: [bad, 'y'] } } } } });
  const task = await agent.task(`Task ${bad}`, { instructions: markup, verification: markup, checklist: [{ text: bad }] });
  for (const id of [ask, input, task]) {
    await page.row(id).waitFor();
    await page.open(id);
    const found = await p.evaluate(() => [...document.querySelectorAll('.row b, .row img, main script, main style, main iframe, main form, main img:not([src^="data:"]), main svg[onload], main meta, main base, main [style*=fixed], main [onerror]')].map((e) => e.outerHTML));
    assert.deepEqual(found, []);
    const hrefs = await p.evaluate(() => [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')));
    assert.ok(hrefs.every((h) => h === null || /^(https?|mailto):/.test(h)), `${hrefs}`);
  }
  await page.open(ask);
  await page.says('h2', /<b>bold<\/b>/);
  await page.says('[data-decision]', /\{\{7\*7\}\} \$\{7\*7\}/);
  await page.keys('1');
  await until('the answer', () => agent.answer(ask), (a) => a.value === bad);
  await page.keys('g', 'd');
  await page.open(ask);
  await page.says('[data-decision]', /<b>bold/);
  await page.keys('Control+k');
  await p.keyboard.type('title');
  await page.keys('Escape');
  assert.equal(await p.evaluate(() => window.hit), undefined, 'something ran');
  assert.equal(await p.evaluate(() => ({}).polluted), undefined);
  assert.equal((await hub.call('GET', `/api/items/${ask}`)).state, 'answered');
});

test('links leave the page alone and open outside, the allowed ones', async ({ agent, page, p }) => {
  const id = await agent.ask('Links', { body: '[ok](https://example.org/a) [mail](mailto:a@example.org)\n\n<https://example.org/b>' });
  await page.row(id).waitFor();
  await page.open(id);
  await p.evaluate(() => {
    window.opened = [];
    window.open = (...a) => { window.opened.push(a); return null; };
  });
  const link = p.locator('.prose a[href="https://example.org/a"]');
  await link.click();
  await link.click({ button: 'middle' });
  await link.click({ modifiers: ['Control'] });
  await link.focus();
  await p.keyboard.press('Enter');
  await p.locator('.prose a[href^="mailto:"]').click();
  const opened = await p.evaluate(() => window.opened);
  assert.deepEqual(opened.map((o) => o[0]), [...Array(4).fill('https://example.org/a'), 'mailto:a@example.org']);
  assert.ok(opened.every((o) => o[1] === '_blank' && /noopener/.test(o[2])));
  assert.equal(page.context.pages().length, 1);
  // Whatever gets in besides: the guard holds for any link in the page.
  await p.evaluate(() => {
    for (const href of ['javascript:window.hit=1', 'vscode://x', '/v1/settings', 'file:///etc/passwd']) {
      const a = document.createElement('a');
      a.href = href;
      document.body.append(a);
      a.click();
    }
  });
  await page.settled();
  assert.equal(await p.evaluate(() => window.hit), undefined);
  assert.ok((await p.evaluate(() => location.href)).includes('#/needs/'));
  assert.equal((await p.evaluate(() => window.opened)).length, 5);
});

test('what hides is shown: bidi, zero width, look-alikes, controls', async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Run \u202Egnp.exe\u202C from p\u0430ypal.com?\u200B', { body: 'Open `rm\u200B -rf \u2066/tmp\u2069` and <https://p\u0430ypal.com/login>', context: [{ kind: 'data', data: { cmd: 'a\u200bb\u202ec' } }],
    request: { mode: 'select', options: [{ value: 'a\u200b', label: 'Yes\u202e sey' }, { value: 'b', label: 'No' }] } });
  await page.row(id).waitFor();
  await page.open(id);
  const raw = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;
  for (const s of ['h2', '.row', '[data-reading]', '[data-decision]']) {
    const text = (await p.locator(s).allInnerTexts()).join('');
    assert.ok(!raw.test(text), `${s}: ${JSON.stringify(text)}`);
    assert.match(text, /right-to-left override|zero-width space|U\+20/, s);
  }
  assert.ok(!raw.test(await p.evaluate(() => [...document.querySelectorAll('[title], [aria-label]')].map((e) => `${e.title} ${e.ariaLabel}`).join(''))), 'a tooltip hides it');
  await page.keys('1');
  await until('the answer', () => agent.answer(id), (a) => a.value === 'a\u200b');
  await page.says('.toast', /right-to-left override/); // and in what is said of it
  assert.equal((await hub.call('GET', `/api/items/${id}`)).outcome.value, 'a\u200b');
});

test('200 characters of title, right to left, emoji, combining marks', { viewport: { width: 1100, height: 700 } }, async ({ agent, page, p }) => {
  const titles = ['W'.repeat(200), 'Supercalifragilistic '.repeat(9).trim(), 'هل أنشر الإصدار الآن؟ '.repeat(8).trim(), `${'👩‍👩‍👧‍👦'.repeat(25)}`, `Z${'\u0316'.repeat(190)}algo`, 'שלום (world) 123!'];
  const ids = [];
  for (const t of titles) ids.push(await agent.ask(t, { body: `${t}\n\n${'x'.repeat(3000)}\n\n| a | b |\n|---|---|\n| ${'y'.repeat(400)} | 2 |` }));
  await page.row(ids.at(-1)).waitFor();
  for (const id of ids) {
    await page.open(id);
    const wide = await p.evaluate(() => [document.documentElement, document.querySelector('main'), document.querySelector('.frame'), document.querySelector('[data-list]'), document.querySelector('[data-decision]')]
      .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => `${e.tagName}.${e.className}: ${e.scrollWidth} > ${e.clientWidth}`));
    assert.deepEqual(wide, [], 'something is wider than its place');
    const height = await p.evaluate((x) => document.querySelector(`[data-id="${x}"]`).getBoundingClientRect().height, id);
    assert.equal(height, 44);
    assert.ok((await page.decision().boundingBox()).height > 80);
  }
  assert.equal(await page.row(ids[0]).locator('bdi').first().getAttribute('title'), titles[0], 'the whole title is in a tooltip');
  assert.equal(await p.evaluate((x) => getComputedStyle(document.querySelector(`[data-id="${x}"] .title bdi`)).direction, ids[2]), 'rtl');
});

test('a body of 64 KiB opens quickly and scrolls', async ({ agent, page, p }) => {
  const paragraph = 'The quick **brown** fox `jumps` over [the](https://example.org/) lazy dog.\n\n- one\n- two\n\n```go\nfunc main() { return }\n```\n\n';
  const big = paragraph.repeat(500).slice(0, 65_000);
  const id = await agent.ask('Big', { body: big, context: [{ kind: 'data', data: { deep: Array.from({ length: 300 }, (_, i) => ({ i, text: 'x'.repeat(50) })) } }] });
  await page.row(id).waitFor();
  const before = await page.worked();
  await page.open(id);
  const took = await page.worked() - before;
  assert.ok(took > 0 && took < 1500, `it took ${took} ms`);
  assert.ok(await p.evaluate(() => { const r = document.querySelector('[data-reading]'); r.scrollTop = 1e6; return r.scrollTop > 5000; }));
  const deep = '['.repeat(2000) + ']'.repeat(2000);
  const nest = await agent.ask('Nested', { body: `${'> '.repeat(500)}deep\n\n${'*'.repeat(5000)}\n\n${deep}\n\n${'[a]('.repeat(1000)}` });
  await page.row(nest).waitFor();
  await page.open(nest);
});

test('a sensitive item is marked, and its words are nowhere kept', async ({ hub, agent, page, p }) => {
  const id = await agent.ask('Sensitive one', { sensitive: true, body: 'The code is 7391-secret.', request: { permissions: { allow_edit: true } } });
  await page.row(id).waitFor();
  await page.open(id);
  await page.says('main', /sensitive/);
  await page.keys('w');
  await p.keyboard.type('typed-secret');
  const kept = await p.evaluate(async () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.title, location.href, await caches.keys(), await indexedDB.databases()]));
  assert.ok(!/secret/.test(kept), kept);
  const r = await p.evaluate((x) => fetch(`/api/items/${x}`, { headers: { 'X-Deskbell-Page': localStorage.getItem('deskbell.page') } }).then((a) => [a.status, a.headers.get('cache-control')]), id);
  assert.deepEqual(r, [200, 'no-store']);
  assert.ok(!hub.log.includes('secret'));
});

test('no other page may call the hub or frame it', { page: false }, async ({ hub, page, p }) => {
  const { createServer } = await import('node:http');
  const other = createServer((_, res) => res.setHeader('Content-Type', 'text/html').end('<h1>elsewhere</h1>'));
  await new Promise((ready) => other.listen(0, '127.0.0.1', ready));
  await page.signIn();
  await p.goto(`http://127.0.0.1:${other.address().port}/`);
  const tried = await p.evaluate(async (url) => {
    const call = (path, init) => fetch(url + path, { credentials: 'include', ...init }).then((r) => `${r.type} ${r.status}`, () => 'blocked');
    const frame = document.createElement('iframe');
    frame.src = url;
    document.body.append(frame);
    await new Promise((then) => { frame.onload = then; setTimeout(then, 1500); });
    let seen = 'blocked';
    try { seen = frame.contentDocument ? frame.contentDocument.title : 'blocked'; } catch { /* as it should be */ }
    return [await call('/api/state'), await call('/api/practice', { method: 'POST', mode: 'no-cors', body: '{}' }), await call('/v1/settings', { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: '{}' }), seen];
  }, hub.url);
  assert.equal(tried[0], 'blocked');
  assert.equal(tried[2], 'blocked');
  assert.notEqual(tried[3], 'Deskbell');
  assert.equal((await hub.call('GET', '/v1/messages')).messages.length, 0, 'a practice ask was posted from elsewhere');
  page.problems.length = 0; // that other page was meant to be refused
  await p.goto('about:blank');
  other.close();
  other.closeAllConnections();
});
