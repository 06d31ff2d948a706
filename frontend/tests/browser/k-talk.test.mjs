import { assert, test, until } from './harness.mjs';

/** An agent of the network that lives in the page: it has the page's own origin, so the hub takes it. */
async function agent(p, name, more = {}) {
  await p.evaluate(async ({ name, more }) => {
    const ws = new WebSocket(`${location.origin.replace('http', 'ws')}/map`);
    const waiting = new Map();
    const agents = (window.agents ??= {});
    const a = (agents[name] = { got: [], n: 0 });
    ws.onmessage = (e) => {
      const f = JSON.parse(e.data);
      if (f.method) a.got.push(f);
      else waiting.get(f.id)?.(f);
    };
    await new Promise((r) => { ws.onopen = r; });
    a.ask = (method, params) => new Promise((r) => { const id = ++a.n; waiting.set(id, r); ws.send(JSON.stringify({ jsonrpc: '2.0', id, method, params })); });
    await a.ask('map/connect', { protocolVersion: 1, participantType: 'agent', name });
    await a.ask('map/agents/register', { name, ...more });
  }, { name, more });
  return {
    ask: (method, params) => p.evaluate(({ name, method, params }) => window.agents[name].ask(method, params), { name, method, params }).then((f) => f.result),
    got: () => p.evaluate((name) => window.agents[name].got, name),
  };
}

test('a conversation is read, answered and ended, and a private word stays private', async ({ page, p }) => {
  const a = await agent(p, 'planner', { role: 'lead', scopes: ['team'] });
  const b = await agent(p, 'tester', { parent: 'planner' });
  const { conversation } = await a.ask('mail/create', { subject: 'Release <b>plan</b>', initialParticipants: [{ id: 'tester' }], initialTurn: { contentType: 'text', content: { text: 'Ready <script>alert(1)</script> **now**' } } });
  await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text: 'between us agents' }, visibility: { type: 'participants', ids: ['tester'] } });
  await page.says('nav', /Conversations\s*1/);
  await page.keys('g', 'v');
  await page.says('main', /1 with something new/);
  await page.says('main [data-stop]', /Release <b>plan<\/b>/);
  await p.locator('main [data-stop]').first().click();
  await page.says('main', /Ready/);
  assert.equal(await p.locator('main .turns li').count(), 1, 'what is not for the person is not shown');
  assert.equal(await p.locator('main .turns .written').first().innerText(), 'Ready <script>alert(1)</script> **now**');
  await until('nothing is new in the navigation', () => p.locator('nav button[aria-label="Conversations"]').count(), (n) => n === 1);
  await p.fill('main textarea', 'Go ahead');
  await p.locator('main textarea').press('Control+Enter');
  await until('both hear of it', async () => [await a.got(), await b.got()].every((got) => got.some((f) => f.method === 'map/message' && f.params.message.from === 'human' && f.params.message.payload.text === 'Go ahead')), (ok) => ok);
  await until('the field is empty', () => p.inputValue('main textarea'), (v) => v === '');
  await p.selectOption('main form select', 'planner');
  await p.fill('main textarea', 'Only you');
  await p.click('main button:has-text("Send")');
  await page.says('main', /only for\s+planner/);
  const { turns } = await b.ask('mail/turns/list', { conversationId: conversation.id });
  assert.ok(!JSON.stringify(turns).includes('Only you'));
  await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text: 'Understood' } });
  await page.says('main', /Understood/);
  await p.click('main button:has-text("End it…")');
  await page.says('dialog', /Nobody in it can say anything more/);
  await p.click('dialog >> text=Cancel');
  await page.says('main', /Understood/);
  await p.click('main button:has-text("End it…")');
  await p.click('dialog >> text=End it now');
  await page.says('main', /This conversation has ended/);
  await page.keys('Escape');
  await page.says('h1', /Conversations/);
  await page.says('main', /nothing new/);
});

test('what is half written when a conversation ends is no command, and comes back with it', async ({ hub, page, p }) => {
  await agent(p, 'planner');
  const talk = await hub.call('POST', '/api/conversations', { subject: 'Short', with: ['planner'] });
  await page.at(`#/conversations/${talk.id}`);
  await page.keys('i');
  await p.keyboard.type('half a sent');
  await hub.call('POST', `/api/conversations/${talk.id}/act`, { act: 'close' });
  await page.says('main form', /This conversation has ended\. What you were writing was not sent\./);
  await p.keyboard.type('ence gn 1');
  await page.settled();
  assert.equal(await p.inputValue('main textarea'), 'half a sent');
  assert.equal(await p.locator('dialog').count(), 0);
  await p.click('main button:has-text("Open it again")');
  await p.waitForSelector('main textarea:not([readonly])');
  assert.equal(await p.inputValue('main textarea'), 'half a sent');
});

test('in a low window the field and Send of a conversation stay in sight', { viewport: { width: 640, height: 420 } }, async ({ hub, page, p }) => {
  await agent(p, 'planner');
  const talk = await hub.call('POST', '/api/conversations', { subject: 'A long one', with: ['planner'] });
  for (let i = 0; i < 9; i++) await hub.call('POST', `/api/conversations/${talk.id}/turns`, { text: `Turn ${i}` });
  await page.at(`#/conversations/${talk.id}`);
  await page.says('main .turns', /Turn 8/);
  await p.locator('main .answer').last().click();
  await page.says('main form', /In answer to/);
  for (const part of ['main textarea', 'main form button:has-text("Send")']) {
    const box = await p.locator(part).boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 420, `${part}: ${JSON.stringify(box)}`);
  }
});

test('a conversation opens at its newest turn, is written in by key, and keeps what was begun', async ({ hub, page, p }) => {
  await agent(p, 'planner');
  const talk = await hub.call('POST', '/api/conversations', { subject: 'A long one', with: ['planner'] });
  for (let i = 0; i < 30; i++) await hub.call('POST', `/api/conversations/${talk.id}/turns`, { text: `Turn ${i}` });
  await page.keys('g', 'v');
  await page.says('main [data-stop]', /A long one/);
  await page.keys('j', 'Enter');
  await page.says('main .turns', /Turn 29/);
  const seen = (text) => p.evaluate((t) => { const e = [...document.querySelectorAll('main .turns li')].find((x) => x.innerText.includes(t)).getBoundingClientRect(); const box = document.querySelector('main [role=log]').getBoundingClientRect(); return e.top >= box.top - 1 && e.bottom <= box.bottom + 1; }, text);
  await until('the newest', () => seen('Turn 29'));
  assert.ok(!await seen('Turn 3'));
  await page.keys('k'); // from turn to turn
  assert.match(await p.evaluate(() => document.activeElement.innerText), /Turn 29/);
  await page.keys('i');
  await p.keyboard.type('half a');
  await p.selectOption('main form select', { index: 1 });
  await page.keys('Escape', 'Escape', 'g', 'n', 'g', 'v', 'j', 'Enter');
  await page.says('main .turns', /Turn 29/);
  assert.equal(await p.inputValue('main textarea'), 'half a');
  assert.match(await p.locator('main form select').evaluate((e) => e.selectedOptions[0].text), /planner alone/); // and not suddenly for everybody
  await hub.call('POST', `/api/conversations/${talk.id}/turns`, { text: 'And one more' });
  await page.says('main .turns', /And one more/);
  await until('it stays at its end', () => seen('And one more'));
  await page.keys('Escape', 'b');
  await page.says('main form', /planner/);
  await p.getByLabel('About').fill('Begun');
  await page.keys('Escape');
  await until('no form', () => p.locator('main form').count(), (n) => n === 0);
  await page.keys('b');
  assert.equal(await p.getByLabel('About').inputValue(), 'Begun');
});

test('the fleet shows the network and its scopes', async ({ page, p }) => {
  await agent(p, 'planner', { role: 'lead', scopes: ['team'] });
  await agent(p, 'tester', { parent: 'planner' });
  await page.keys('g', 'f');
  await page.says('main', /planner\s*lead · registered · connected/);
  await page.says('main', /Scopes\s*team\s*1 agent: planner/);
  await p.click('main section button:has-text("tester")');
  await page.says('h1', /tester/);
});

test('the person begins a conversation and answers in a thread, by keyboard', async ({ page, p }) => {
  const a = await agent(p, 'planner', { role: 'lead' });
  const b = await agent(p, 'tester');
  await page.keys('g', 'v', 'b');
  await page.says('main form', /New conversation/);
  await page.keys('Control+Enter');
  await page.says('main form', /Choose at least one agent/);
  await p.keyboard.press('Space');
  await p.keyboard.press('Tab');
  await p.keyboard.press('Space');
  await p.keyboard.press('Tab');
  await p.keyboard.type('Release');
  await p.keyboard.press('Tab');
  await p.keyboard.type('Who is free?');
  await p.keyboard.press('Control+Enter');
  await page.says('h1', /Release/);
  await page.says('main .turns', /Who is free\?/);
  await until('both hear of it', async () => [await a.got(), await b.got()].every((got) => got.some((f) => f.method === 'map/message' && f.params.message.payload.text === 'Who is free?')), (ok) => ok);
  const { conversations } = await a.ask('mail/list', {});
  const id = conversations[0].id;
  await a.ask('mail/turn', { conversationId: id, contentType: 'text', content: { text: 'I am' } });
  await page.says('main .turns', /I am/);
  await p.locator('main .turns li', { hasText: 'I am' }).getByRole('button', { name: 'Answer planner' }).press('Enter');
  await page.says('main form', /In answer to planner/);
  await until('the field has the focus', () => p.evaluate(() => document.activeElement?.getAttribute('aria-label')), (name) => name === 'Your message');
  await p.keyboard.type('Then begin');
  await p.selectOption('main form [data-thread]', 'new thread');
  await p.locator('main form textarea').press('Control+Enter');
  await page.says('main .turns', /Then begin/);
  await until('only the thread is shown', () => p.locator('main .turns li').count(), (n) => n === 2);
  const { threads } = await a.ask('mail/thread/list', { conversationId: id });
  assert.equal(threads.length, 1);
  await b.ask('mail/turn', { conversationId: id, contentType: 'text', content: { text: 'Me too' }, threadId: threads[0].id });
  await page.says('main .turns', /Me too/);
  await p.fill('main form textarea', 'Both of you');
  await p.locator('main form textarea').press('Control+Enter');
  const said = await until('it is in the thread', async () => (await a.ask('mail/turns/list', { conversationId: id, filter: { threadId: threads[0].id } })).turns.map((t) => t.content.text), (t) => t.length === 3);
  assert.deepEqual(said, ['Then begin', 'Me too', 'Both of you']);
  await p.selectOption('main .pick select', '');
  await until('all of it is shown', () => p.locator('main .turns li').count(), (n) => n === 5);
  assert.equal(await p.locator('main form [data-thread]').inputValue(), '');
  await page.keys('Escape', 'Escape');
  await page.says('h1', /Conversations/);
});

test('the network is drawn, and every agent in it is reached by key', async ({ page, p }) => {
  await agent(p, 'planner', { role: 'lead' });
  await agent(p, 'tester', { parent: 'planner' });
  await agent(p, 'critic', { relationships: [{ type: 'peer', agentId: 'planner' }] });
  await page.keys('g', 'f');
  await until('three agents are drawn', () => p.locator('main svg a[data-node]').count(), (n) => n === 3);
  assert.equal(await p.locator('main svg path.parent').count(), 1);
  assert.equal(await p.locator('main svg path.other').count(), 1);
  assert.equal(await p.locator('main svg a[data-node=tester]').getAttribute('aria-label'), 'tester registered, connected, child of planner');
  assert.match(await p.locator('main svg a[data-node=critic]').getAttribute('aria-label'), /peer of planner/);
  const [parent, child] = await Promise.all(['planner', 'tester'].map((n) => p.locator(`main svg a[data-node=${n}] rect`).boundingBox()));
  assert.ok(child.x > parent.x + parent.width, 'a child stands right of its parent');
  await p.locator('main svg a[data-node=tester]').focus();
  await p.keyboard.press('Enter');
  await page.says('h1', /tester/);
});

test('a credential is asked for, granted, listed and ended', { settings: { 'map.credentials': ['github:repo:write=GITHUB'] } }, async ({ page, p, hub }) => {
  await hub.call('PUT', '/api/secrets/GITHUB', { value: 'never-shown' });
  const a = await agent(p, 'planner');
  const asked = a.ask('cred/get', { scope: 'github:repo:write', resource: 'acme/site' });
  await page.says('body', /planner asks for a credential: github:repo:write/);
  await page.keys('j', 'Enter');
  await page.says('[data-reading]', /Nobody has proved who asks/);
  await page.says('[data-reading]', /acme\/site/);
  await page.keys('2');
  assert.equal((await asked).credential.token, 'never-shown');
  await page.keys('g', 'f');
  await page.says('main', /planner github:repo:write on acme\/site/);
  assert.ok(!(await p.content()).includes('never-shown'));
  await p.click('main button:has-text("End it…")');
  await page.says('dialog', /has to ask you again/);
  await page.keys('Enter'); // the focus is on Cancel
  assert.equal(await p.locator('main h2:has-text("Credentials that you granted")').count(), 1);
  await p.click('main button:has-text("End it…")');
  await p.click('dialog button.danger');
  await until('it is gone', () => p.locator('main h2:has-text("Credentials that you granted")').count(), (n) => n === 0);
});

test('a turn that asks is answered where it stands, by what it offers, and the notices of what is read there are read', async ({ hub, page, p }) => {
  const a = await agent(p, 'planner');
  const { conversation } = await a.ask('mail/create', { subject: 'Release plan', initialParticipants: [{ id: 'human' }], initialTurn: { contentType: 'text', content: { text: 'First words' } } });
  const { turn } = await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text: 'Ship on Friday?', options: ['Yes', 'No, wait'] }, metadata: { expectsResponse: true } });
  await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'event', content: { event: 'build.finished', status: 'green <b>17</b>' } });
  await page.keys('g', 'n');
  await page.says('.row', /Ship on Friday/);
  await p.locator('.row').first().click();
  await p.click('button:has-text("Its conversation")');
  await page.says('main .turns', /waits for your answer/);
  await page.says('main .turns', /green <b>17<\/b>/);
  await until('its notices are read', async () => (await hub.call('GET', '/api/items?box=notices')).rows.filter((x) => x.unread).length, (n) => n === 0);
  await p.click('main .turns button:has-text("No, wait")');
  assert.equal(await p.inputValue('main textarea'), 'No, wait', 'it is sent by the person, and not by a slip');
  await p.locator('main textarea').press('Control+Enter');
  await until('the asker has its answer', async () => (await a.got()).find((f) => f.method === 'map/message' && f.params.message.meta.isResult)?.params.message, (m) => m?.meta.correlationId === turn.id && m.payload.value === 'No, wait');
  await until('it waits no more', () => p.locator('main .turns .waits').count(), (n) => n === 0);
  await page.keys('Escape', 'Escape', 'g', 'n');
  await until('nothing needs the person', async () => (await hub.call('GET', '/api/items?box=needs')).rows.length, (n) => n === 0);
});

test('names of wide letters stay in their boxes, and nobody is called proved who is not', async ({ page, p }) => {
  await agent(p, 'WWWWWWWWWWWWWWWWWWWWWWWWWWWWWW');
  await page.keys('g', 'f');
  await page.says('main', /Network/);
  const wide = await until('it is drawn', () => p.evaluate(() => [...document.querySelectorAll('svg a[data-node]')].map((g) => ({ text: g.querySelector('.name').getBoundingClientRect().right, box: g.querySelector('rect').getBoundingClientRect().right, title: g.querySelector('title').textContent }))), (x) => x.length === 1);
  assert.ok(wide[0].text <= wide[0].box, `${wide[0].text} in ${wide[0].box}`);
  assert.match(wide[0].title, /^W{30}$/);
  await p.locator('svg a[data-node]').click();
  await page.says('main', /Nobody has proved who it is/);
});

test('an answer to what few may read says for whom it is, and is for them alone', async ({ page, p }) => {
  const lead = await agent(p, 'lead');
  const tester = await agent(p, 'tester');
  const { conversation } = await lead.ask('mail/create', { subject: 'Plan', initialParticipants: [{ id: 'human' }, { id: 'tester' }], initialTurn: { contentType: 'text', content: { text: 'Hello all' } } });
  const says = (text, more = {}) => tester.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text }, visibility: { type: 'participants', ids: ['human'] }, ...more });
  await says('Between us');
  await says('Shall I?', { metadata: { expectsResponse: true } });
  await page.keys('g', 'v');
  await page.says('main [data-stop]', /Plan/);
  await p.locator('main [data-stop]').first().click();
  await page.says('main .turns', /waits for your answer/);
  const chosen = () => p.locator('main form select').first().evaluate((e) => e.selectedOptions[0].text);
  await p.selectOption('main form select', 'lead');
  for (const [to, text] of [['Between us', 'my secret'], ['Shall I?', 'my leave']]) {
    await p.locator('main .turns li', { hasText: to }).first().locator('.answer').click();
    assert.equal(await chosen(), 'tester alone');
    await p.keyboard.type(text);
    await p.focus('main .said');
    await page.keys('g', 'f', 'g', 'v'); // elsewhere, and back
    await p.locator('main [data-stop]').first().click();
    await page.says('main form', /In answer to tester/);
    assert.equal(await chosen(), 'tester alone', 'what was being written is for others now');
    await p.focus('main textarea');
    await page.keys('Escape');
    if (await p.locator('main textarea').count() === 0) await p.locator('main [data-stop]').first().click();
    await page.says('main form', /In answer to tester/);
    await p.focus('main textarea');
    await page.keys('Control+Enter');
    await page.says('main .turns', new RegExp(text));
  }
  await p.locator('main .turns li', { hasText: 'Hello all' }).first().locator('.answer').click();
  assert.equal(await chosen(), 'everybody in it');
  await p.keyboard.type('for all');
  await page.keys('Control+Enter');
  await page.says('main .turns', /for all/);
  const read = async (who) => (await who.ask('mail/turns/list', { conversationId: conversation.id })).turns.map((t) => t.content.text);
  assert.deepEqual(await read(lead), ['Hello all', 'for all']);
  assert.deepEqual(await read(tester), ['Hello all', 'Between us', 'Shall I?', 'my secret', 'my leave', 'for all']);
  await p.locator('main .turns li', { hasText: 'Between us' }).first().locator('.answer').click();
  await p.selectOption('main form [data-thread]', 'new thread');
  await p.fill('main textarea', 'apart');
  await page.keys('Control+Enter');
  await page.says('main .turns', /apart/);
  assert.equal(await chosen(), 'tester alone', 'what is said next in the thread is for others');
});

test('the few for whom something is said to be are those who hear it', { settings: { 'resolve.hold_seconds': 30 } }, async ({ page, p, hub }) => {
  const [lead, tester, third] = [await agent(p, 'lead'), await agent(p, 'tester'), await agent(p, 'third')];
  const { conversation } = await lead.ask('mail/create', { subject: 'Plan', initialParticipants: [{ id: 'human' }, { id: 'tester' }, { id: 'third' }], initialTurn: { contentType: 'text', content: { text: 'Hello all' } } });
  const says = (who, text, more = {}) => who.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text }, ...more });
  const { turn } = await says(tester, 'Between us', { visibility: { type: 'participants', ids: ['human'] } });
  const { thread } = await tester.ask('mail/thread/create', { conversationId: conversation.id, rootTurnId: turn.id });
  await page.keys('g', 'v', 'j', 'Enter');
  await page.says('main .turns', /Between us/);
  const chosen = () => p.locator('main form select').first().evaluate((e) => e.selectedOptions[0].text);
  const read = async (who, text) => (await who.ask('mail/turns/list', { conversationId: conversation.id, limit: 500 })).turns.some((t) => t.content.text === text);
  const heard = async (text, want) => {
    await page.says('main .turns', new RegExp(text));
    assert.deepEqual([await read(lead, text), await read(tester, text), await read(third, text)], want, text);
  };
  const answer = (text) => p.locator('main .turns li', { hasText: text }).first().locator('.answer').click();
  const now = async () => { // what is kept back goes out
    await hub.call('PATCH', '/v1/settings', { 'resolve.hold_seconds': 0 });
    await p.focus('main textarea');
    await page.keys('Control+Enter');
  };
  await says(tester, 'In here?', { threadId: thread.id, metadata: { expectsResponse: true } });
  await page.says('main .turns', /In here\?[^]*waits for your answer|waits for your answer[^]*In here\?/);
  await answer('In here?');
  await until('it is for few', chosen, (v) => v === 'tester alone');
  await p.keyboard.type('answer in here');
  await now();
  await heard('answer in here', [false, true, false]);
  await says(lead, 'Which port?', { metadata: { expectsResponse: true } });
  await p.selectOption('main header select', '');
  await page.says('main .turns', /Which port\?/);
  await until('it waits', () => p.locator('main .turns li', { hasText: 'Which port?' }).locator('.waits').count(), (n) => n === 1);
  await answer('Which port?');
  await p.selectOption('main form [data-thread]', thread.id);
  await until('whoever asks has the answer too', chosen, (v) => v === 'tester and lead');
  await p.fill('main textarea', 'port 1');
  await now();
  await heard('port 1', [true, true, false]);

  await hub.call('PATCH', '/v1/settings', { 'resolve.hold_seconds': 30 });
  await says(tester, 'You and third?', { metadata: { expectsResponse: true }, visibility: { type: 'participants', ids: ['human', 'third'] } });
  await p.selectOption('main header select', '');
  await until('it waits', () => p.locator('main .turns li', { hasText: 'You and third?' }).locator('.waits').count(), (n) => n === 1);
  await answer('You and third?');
  await until('for both', chosen, (v) => v === 'third and tester');
  await p.selectOption('main form select', { label: 'lead and tester' });
  await p.fill('main textarea', 'not for third');
  await page.keys('Control+Enter');
  await page.says('.toast', /Not sent yet/);
  await page.keys('Control+z');
  await until('it is back', () => p.inputValue('main textarea'), (v) => v === 'not for third');
  await until('for whom it was', chosen, (v) => v === 'lead and tester');
  const waiting = (await hub.call('GET', '/v1/messages?protocol=map&limit=100')).messages.find((m) => m.title === 'You and third?');
  await hub.call('POST', `/v1/messages/${waiting.id}/resolve`, { resolution: 'declined' }); // it ends elsewhere while it is answered
  await hub.call('PATCH', '/v1/settings', { 'resolve.hold_seconds': 0 });
  await until('it waits no more', () => p.locator('main .turns li', { hasText: 'You and third?' }).locator('.waits').count(), (n) => n === 0);
  assert.equal(await chosen(), 'lead and tester');
  await now();
  await heard('not for third', [true, true, false]);

  await p.selectOption('main header select', thread.id);
  await p.fill('main textarea', 'half written');
  assert.equal(await chosen(), 'tester alone');
  await p.selectOption('main header select', '');
  assert.equal(await chosen(), 'tester alone', 'to read elsewhere makes it for everybody');
  await now();
  await heard('half written', [false, true, false]);

  await p.selectOption('main header select', '');
  await p.selectOption('main form select', { label: 'third alone' });
  await p.fill('main textarea', 'for one who goes');
  await third.ask('mail/leave', { conversationId: conversation.id });
  await until('it says so', chosen, (v) => v === 'third (who left) alone');
  assert.ok(await p.locator('main form button', { hasText: 'Send' }).isDisabled());
});

test('a long conversation is shown from its end, and read back by steps without losing the place', async ({ hub, page, p }) => {
  await agent(p, 'planner');
  const talk = await hub.call('POST', '/api/conversations', { subject: 'Very long', with: ['planner'], text: 'Turn 0' });
  await p.evaluate(async (id) => {
    for (let i = 1; i < 450; i++) await window.agents.planner.ask('mail/turn', { conversationId: id, contentType: 'text', content: { text: `Turn ${i}` } });
  }, talk.id);
  await page.at(`#/conversations/${talk.id}`);
  await page.says('main .turns', /Turn 449/);
  const count = () => p.locator('main .turns li').count();
  assert.equal(await count(), 200);
  await page.says('main', /250 earlier turns are not on show/);
  await p.locator('main .turns li', { hasText: 'Turn 250' }).locator('.answer').click();
  await p.keyboard.type('about the old one');
  const top = () => p.locator('main .turns li', { hasText: 'Turn 250' }).evaluate((e) => e.getBoundingClientRect().top);
  await p.locator('main .before button').focus();
  const before = await top();
  await page.keys('Enter');
  await until('more of them', count, (n) => n === 400);
  await until('what was read stands where it stood', async () => Math.abs(await top() - before) < 2, (ok) => ok);
  await page.says('main', /50 earlier turns are not on show/);
  await page.keys('Escape', 'g', 'n');
  await hub.call('POST', `/api/conversations/${talk.id}/turns`, { text: 'Turn 450' });
  await page.keys('g', 'v', 'j', 'Enter');
  await page.says('main .turns', /Turn 450/);
  assert.equal(await count(), 200);
  await page.says('main form', /In answer to planner/); // though that turn is not on show
});

test('the keys go from turn to turn, whatever holds the focus within', async ({ hub, page, p }) => {
  await agent(p, 'planner');
  const talk = await hub.call('POST', '/api/conversations', { subject: 'Four', with: ['planner'] });
  for (let i = 1; i < 5; i++) await hub.call('POST', `/api/conversations/${talk.id}/turns`, { text: `Turn ${i}` });
  await page.at(`#/conversations/${talk.id}`);
  await page.says('main .turns', /Turn 4/);
  const at = () => p.evaluate(() => /Turn \d/.exec(document.activeElement.closest('li')?.innerText ?? '')?.[0]);
  for (const [key, want] of ['k4', 'k3', 'k2', 'k1', 'k1', 'j2', 'j3', 'j4', 'j4'].map((x) => [x[0], `Turn ${x[1]}`])) {
    await page.keys(key);
    assert.equal(await at(), want, key);
  }
  await page.keys('k');
  await p.locator('main .turns li', { hasText: 'Turn 2' }).locator('.answer').focus();
  await page.keys('j');
  assert.equal(await at(), 'Turn 3');
});

test('an answer in a conversation is kept back for a while and taken back as from the inbox', { settings: { 'resolve.hold_seconds': 60 } }, async ({ hub, page, p }) => {
  const a = await agent(p, 'planner');
  const { conversation } = await a.ask('mail/create', { subject: 'Plan', initialParticipants: [{ id: 'human' }] });
  await a.ask('mail/turn', { conversationId: conversation.id, contentType: 'text', content: { text: 'Ship it?', options: ['Yes', 'Not today'] }, metadata: { expectsResponse: true } });
  await page.keys('g', 'v');
  await page.says('main [data-stop]', /Plan/);
  await p.locator('main [data-stop]').first().click();
  await page.says('main .turns', /waits for your answer/);
  await p.locator('main .answer').first().click();
  await p.keyboard.type('Not today');
  await page.keys('Control+Enter');
  await page.says('.toast', /Not sent yet: Not today.*goes out in/s);
  assert.equal(await p.inputValue('main textarea'), '');
  await p.focus('main .said');
  await page.keys('g', 'f');
  await page.says('h1', /Fleet/);
  await page.keys('Control+z');
  await until('it is as it was', () => p.inputValue('main textarea'), (v) => v === 'Not today');
  await page.says('main form', /In answer to planner/);
  await page.says('main .turns', /waits for your answer/);
  assert.equal((await a.got()).filter((f) => f.method === 'map/message').length, 0);
  assert.equal(await p.locator('.toast').count(), 0);
  const field = (want) => until(`the field has ${want}`, () => p.inputValue('main textarea'), (v) => v === want);
  await p.focus('main textarea');
  await page.keys('Control+Enter');
  await page.says('.toast', /Not sent yet/);
  await p.focus('main .said');
  await page.keys('g', 'f', 'g', 'v', 'j', 'Enter'); // elsewhere, and in the conversation again
  await page.says('main .turns', /Ship it/);
  await page.keys('Control+z');
  await field('Not today');
  await page.keys('Control+Enter');
  await page.says('.toast', /Not sent yet/);
  await p.fill('main textarea', 'something else');
  await p.click('.toast button:has-text("Take back")');
  await field('Not today');
  await page.says('main form', /Put aside:\s*“something else”/);
  await until('it waits again', () => p.locator('main .turns .waits').count(), (n) => n === 1);
  await p.click('main .turns button:has-text("Yes")');
  await field('Yes');
  await page.says('main form', /“something else”[^]*“Not today”/);
  await p.locator('main form p:has-text("Not today") button').click();
  await field('Not today');
  await page.says('main form', /In answer to planner/);
  await page.says('main form', /“something else”[^]*“Yes”/);
  await page.keys('Control+Enter');
  await page.says('.toast', /Not sent yet/);
  await p.fill('main textarea', 'a line of now');
  const { rows } = await hub.call('GET', '/api/items?box=needs');
  await hub.call('POST', `/api/items/${rows[0].id}/undo`, {}); // in another window
  await page.says('.toast', /was not sent: taken back meanwhile/);
  await page.says('main form', /“Not today”/);
  await field('a line of now');
});
