import { assert, test, until } from './harness.mjs';

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
  await page.says('header', /ended/);
  await until('no composer', async () => (await p.locator('textarea').count()) === 0);
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
