import { readFileSync } from 'node:fs';
import { Guarded, hashOf } from './acs.mjs';
import { assert, figure, test, until } from './harness.mjs';

const guarded = { before: ({ hub }) => Guarded.start(hub) };
const rules = async (hub) => (await hub.call('GET', '/api/rules')).rules;
const npm = { tool: 'Bash', arguments: [{ name: 'command', op: 'command', value: 'npm test' }] };

test('allowing for longer shows what the rule matches, saves it and answers in one press', guarded, async ({ hub, page, p, given: g }) => {
  const c = await g.call('Bash', { command: 'npm test' });
  await page.row(c.id).waitFor();
  await page.open(c.id);
  await page.keys('a');
  await page.says('dialog', /Allow once/);
  await page.says('dialog h2', /Allow this call/);
  await page.says('dialog section', /command\s*npm test\s·\s/); // what the rules have in common is said once
  assert.match(await p.locator('dialog [role=menuitem]').nth(1).innerText(), /^2?\s*Allow for this session…\s+Session \S+$/);
  assert.match(await p.locator('dialog [role=menuitem]').nth(1).getAttribute('title'), /^Calls of “Bash” whose “command” is .*in this session only/);
  await page.keys('Enter'); // nothing has the focus, so nothing is decided
  assert.deepEqual([await rules(hub), (await hub.call('GET', `/api/items/${c.id}`)).state], [[], 'open']);
  await page.keys('3');
  await page.says('dialog .sentence', /Allow\s+Calls of “Bash” whose “command” is/);
  await page.says('dialog', /answers Claude Code’s own question/);
  await page.says('dialog', /It matches 1 call of the 1/);
  await p.fill('dialog input[aria-label="Value"]', 'npm run build');
  await page.says('dialog', /It matches none/);
  await p.fill('dialog input[aria-label="Value"]', 'npm test');
  await page.says('dialog', /It matches 1 call of the 1/);
  await p.focus('dialog input[aria-label="Value"]');
  await page.keys('Enter', 'Control+Enter'); // in a field neither sends
  assert.deepEqual(await rules(hub), []);
  await p.click('text=Save the rule and allow');
  assert.equal((await c.answer).decision, 'allow');
  const [rule] = await rules(hub);
  assert.deepEqual([rule.verdict, rule.item], ['allow', c.id]);
  // The next one is not asked about.
  const next = await g.ask('Bash', { command: 'npm test' }).answer;
  assert.equal(next.decision, 'allow');
  assert.equal(next.policy_data.rule.id, rule.id);
});

test('what is said beside the buttons of a rule is always in sight, and so is what is risky', { ...guarded, viewport: { width: 900, height: 600 } }, async ({ page, p, given: g }) => {
  const c = await g.call('Bash', { command: 'rm -rf ./dist \u200bx' });
  await page.row(c.id).waitFor();
  await page.open(c.id);
  await page.keys('a');
  await page.keys('3');
  await page.says('dialog .says', /removes files/);
  await page.says('dialog .says', /not all of it is what it looks like/);
  await page.says('dialog [role="note"]', /zero-width space/);
  await page.says('dialog .now', /It matches 1 call of the 1/);
  await page.says('dialog .now', /It waits/);
  assert.ok(await p.locator('dialog .now').evaluate((el) => { const r = el.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }), 'the foot is out of sight');
  c.leave();
  await page.says('dialog .now', /The agent is no longer waiting/);
});

test('a rule marks look-alikes as the card does, and says which arguments do not count', guarded, async ({ page, p, given: g }) => {
  const c = await g.call('Bash', { command: 'ping \u0430pple', timeout: 5 });
  await page.row(c.id).waitFor();
  await page.open(c.id);
  await page.keys('a');
  await page.says('dialog section .mark', /Cyrillic/);
  await page.says('dialog section', /no others \(“description” and “timeout” do not count\)/);
  await page.keys('3');
  await page.says('dialog .sentence .mark', /Cyrillic/);
  await page.says('dialog .sentence', /and no other arguments \(“description” and “timeout” do not count\)/);
  await page.says('dialog .args [role="note"] .mark', /Cyrillic/);
  await page.says('dialog .only', /“description” and “timeout” do not count/);
  await p.keyboard.press('Escape');
  c.leave();
});

test('a call that a rule may deny says which', guarded, async ({ hub, page, p, given: g }) => {
  await hub.call('POST', '/api/rules', { verdict: 'deny', match: { tool: 'Bash', arguments: [{ name: 'command', op: 'command', value: 'rm' }] } });
  await hub.call('POST', '/api/rules', { verdict: 'allow', match: { tool: 'Bash' } });
  const c = await g.call('Bash', { command: 'ls; rm x' });
  await page.row(c.id).waitFor();
  await page.open(c.id);
  await page.says('main', /It may be one of the calls that a rule denies \(it does several things, or can be read in several ways\): Calls of “Bash”/);
  await p.click('main button:has-text("begins with the words “rm”")');
  await page.says('main li', /Deny\s+Calls of “Bash”[\s\S]*Where that cannot be told of a call, you are asked\./);
  c.leave();
});

test('a rule whose call left meanwhile answers nothing', guarded, async ({ hub, page, p, given: g }) => {
  const c = await g.call('Bash', { command: 'npm test' });
  await page.row(c.id).waitFor();
  await page.open(c.id);
  await page.keys('d');
  await p.click('text=Deny for longer…');
  await page.keys('2');
  await page.says('dialog h2', /Deny for this session/);
  c.leave();
  await page.says('dialog', /The agent is no longer waiting. Nothing of yours was sent. The call no longer waits for you/);
  assert.ok(await p.isDisabled('dialog button:has-text("Save the rule and deny")'));
  assert.deepEqual(await rules(hub), []);
});

test('rules are written, tried, ordered by key, changed and revoked', { ...guarded, refusals: [422] }, async ({ hub, page, p, given: g }) => {
  const c = await g.call('Bash', { command: 'npm test' });
  await hub.call('POST', `/api/items/${c.id}/resolve`, { resolution: 'answered', value: 'allow' });
  await c.answer;
  await page.keys('g', 'r');
  await page.says('main', /There are no rules, so you are asked about every call/);
  await page.keys('r');
  await p.click('dialog label:has-text("Deny")');
  await p.fill('dialog input[placeholder="any tool"]', 'Bash');
  await p.click('dialog >> text=Only where an argument');
  await p.fill('dialog input[aria-label="Name of the argument"]', 'command');
  await p.selectOption('dialog select', 'host');
  await p.fill('dialog input[aria-label="Value"]', 'not a host at all');
  await p.locator('dialog [role="alert"]').first().waitFor();
  assert.ok(await p.isDisabled('dialog button:has-text("Save the rule")'));
  await p.selectOption('dialog select', 'command');
  await p.fill('dialog input[aria-label="Value"]', 'npm test');
  await page.says('dialog .sentence', /Deny\s+Calls of “Bash” whose “command” is a single command that begins with the words “npm test”/);
  await page.says('dialog', /1 call\s+allowed\s+denied/);
  await p.fill('dialog textarea', 'Not today.');
  await page.settled();
  await p.click('dialog button:has-text("Save the rule")');
  await page.says('main li', /Deny\s+Calls of “Bash”[\s\S]*Not today\./);
  await hub.call('POST', '/api/rules', { verdict: 'allow', match: { tool: 'Read' } });
  await page.says('main', /2 rules/);
  // By key: the second up, with the focus on it.
  const texts = () => p.locator('main [data-rule] .text').allInnerTexts();
  await page.keys('j', 'j');
  await until('the focus', () => p.evaluate(() => document.activeElement.innerText), (t) => /Read/.test(t));
  await page.keys('Control+ArrowUp');
  await until('the order', texts, (t) => /Read/.test(t[0]) && /Bash/.test(t[1]));
  assert.match(await p.evaluate(() => document.activeElement.innerText), /Read/, 'the focus did not move with it');
  await page.keys('Control+ArrowDown');
  await until('the order', texts, (t) => /Bash/.test(t[0]));
  assert.deepEqual((await rules(hub)).map((r) => r.match.tool), ['Bash', 'Read']);
  await p.locator('main [aria-label="Move down"]').first().click();
  await until('the order', texts, (t) => /Read/.test(t[0]));
  await until('the focus', () => p.evaluate(() => document.activeElement.closest('[data-rule]')?.innerText ?? ''), (t) => /Bash/.test(t));
  // Enter on a rule changes it.
  await p.locator('main [data-rule] button.top').first().focus();
  await page.keys('Enter');
  await p.fill('dialog input[placeholder="any tool"]', 'Glob');
  await page.says('dialog .sentence', /Glob/);
  await p.click('text=Save the change');
  await until('the change', texts, (t) => /Glob/.test(t[0]));
  await p.locator('main [aria-label="Revoke…"]').first().click();
  await page.says('dialog', /Revoke this rule\?/);
  await page.keys('Escape');
  assert.equal((await rules(hub)).length, 2);
  await p.locator('main [aria-label="Revoke…"]').first().click();
  await p.click('dialog button:has-text("Revoke")');
  await page.says('main summary', /2 revoked rules/); // and what the changed one said before
  assert.deepEqual((await rules(hub)).map((r) => r.match.tool), ['Bash']);
});

test('the Guardian shows who asks, what came of it, and that the record is whole', guarded, async ({ hub, page, p, given: g }) => {
  const rule = await hub.call('POST', '/api/rules', { verdict: 'allow', match: npm });
  await g.step('steps/sessionStart', {});
  await g.prompt('Run the tests.');
  await g.ask('Bash', { command: 'npm test' }).answer;
  await g.result('Bash');
  const c = await g.call('Bash', { command: 'git push' });
  await page.says('nav', /Guardian\s*1/);
  await page.keys('g', 'g');
  await page.says('main li', /claude-code:web-app[\s\S]*1 waits[\s\S]*1 allowed/);
  await page.keys('j', 'Enter');
  await page.says('main', /Chain\s+verified, 6 steps/);
  await page.says('.step', /prompt\s+Run the tests\./);
  await page.says('.step', /npm test[\s\S]*allowed[\s\S]*a rule/);
  await page.says('.step', /git push[\s\S]*waits for you/);
  await hub.call('POST', `/api/items/${c.id}/resolve`, { resolution: 'answered', value: 'deny', comment: 'no' });
  await page.says('.step', /git push[\s\S]*denied[\s\S]*you/);
  await p.locator('.step', { hasText: 'npm test' }).click();
  await page.says('section[aria-label="Step 4"]', /steps\/toolCallRequest/);
  await page.keys('Escape'); // closes the step, not the session
  assert.equal(await p.locator('section[aria-label="Step 4"]').count(), 0);
  await page.says('h1', /claude-code:web-app/);
  const gone = await g.call('Bash', { command: 'git pull' });
  gone.leave();
  await page.says('.step', /git pull[\s\S]*withdrawn[\s\S]*no longer waiting/);
  await p.locator('.step', { hasText: 'npm test' }).click();
  await p.click('section[aria-label="Step 4"] >> text=a rule');
  await page.says('h1', /Rules/);
  assert.equal(await p.locator('[data-rule].asked').getAttribute('data-rule'), rule.id);
  await page.keys('g', 'g');
  await page.says('main li', /1 allowed\s+1 denied[\s\S]*seen just now(?! ago)/);
  await page.keys('j', 'Enter');
  await p.locator('.step', { hasText: 'git push' }).click();
  await p.click('text=Show the call');
  await page.says('[data-decision]', /Denied[\s\S]*no/);
  // From the card to its session, and back.
  await p.click('text=All its steps');
  await page.says('h1', /claude-code:web-app/);
  await page.keys('Escape');
  await page.says('[data-decision]', /Denied/);
});

test('a step that was allowed with changes shows them', guarded, async ({ hub, page, p, given: g }) => {
  const c = await g.call('Bash', { command: 'rm -rf build' });
  await hub.call('POST', `/api/items/${c.id}/resolve`, { resolution: 'answered', value: 'allow_edited', edited: { arguments: { command: 'ls build' } } });
  await c.answer;
  await page.keys('g', 'g');
  await page.says('main li', /claude-code:web-app/);
  await page.keys('j', 'Enter');
  await p.locator('.step', { hasText: 'rm -rf build' }).click();
  await page.says('section[aria-label^="Step"] table', /removed\s*rm -rf build[\s\S]*added\s*ls build/);
});

test('the sessions of the doctor are folded, and nobody else’s', guarded, async ({ hub, page, p, given: g }) => {
  for (let i = 0; i < 2; i++) {
    const doctor = await Guarded.start(hub, { platform: 'deskbell', id: 'doctor' });
    await doctor.step('steps/sessionStart', {});
    await doctor.end();
  }
  await g.step('steps/sessionStart', {});
  await g.end();
  const posing = await Guarded.start(hub, { platform: 'deskbell', id: 'doctor' });
  const c = await posing.call('Bash', { command: 'rm -rf /' });
  await hub.call('POST', `/api/items/${c.id}/resolve`, { resolution: 'answered', value: 'allow' });
  await c.answer;
  await posing.end();
  await page.keys('g', 'g');
  await page.says('main details summary', /^2 sessions of the doctor$/);
  await page.says('main section', /Ended[\s\S]*claude-code:web-app/);
  assert.equal(await p.locator('main section li').count(), 2);
  await p.click('main details summary');
  assert.ok(await p.locator('main details li').first().isVisible());
});

test('a broken chain says which step, shows it and marks it; a guarded agent asks for leave', guarded, async ({ page, p, given: g }) => {
  await g.step('steps/sessionStart', {});
  await g.prompt('Hello.');
  await g.call('Bash', { command: 'ls' });
  await p.route('**/api/guardian/acs/**', async (route) => {
    const response = await route.fetch();
    const got = await response.json();
    await route.fulfill({ response, json: got.chain ? { ...got, chain: { ok: false, steps: 2, broken_at: 3, why: 'its hash differs' } } : got });
  });
  await page.at(`#/guardian/${encodeURIComponent(g.key)}`);
  await page.says('main [role="alert"]', /Step 3 was changed after it was recorded: its hash differs/);
  await p.click('text=Show step 3');
  await p.waitForSelector('section[aria-label="Step 3"]');
  assert.equal(await p.locator('.step.broken .n').innerText(), '3');
  // The way there is marked from every page, for as long as the record is.
  await p.route('**/api/state', async (route) => {
    const response = await route.fetch();
    const got = await response.json();
    await route.fulfill({ response, json: { ...got, counts: { ...got.counts, broken: 1 } } });
  });
  await g.prompt('And now?');
  await p.waitForSelector('nav button[aria-label="Guardian, 1 record was changed by something else than the hub"]');
  await page.keys('g', 'f');
  await page.says('main .head', /claude-code:web-app[\s\S]*asks for leave/);
  assert.equal((await p.locator('main .head', { hasText: 'claude-code' }).innerText()).includes('active'), false);
});

test('the first key in a long session starts at what is in sight', guarded, async ({ page, p, given: g }) => {
  for (let i = 1; i <= 120; i++) await g.step('steps/userMessage', { content: [{ type: 'text', value: `line ${i}` }] });
  await page.at(`#/guardian/${encodeURIComponent(g.key)}`);
  await page.says('.step[data-stop="step-120"]', /line 120/);
  const focused = () => p.evaluate(() => document.activeElement?.getAttribute('data-stop'));
  await until('the newest has the focus', async () => { await p.evaluate(() => document.activeElement?.blur()); await page.keys('j'); return focused(); }, (s) => s === 'step-120');
  await page.keys('k');
  assert.equal(await focused(), 'step-119');
  await p.evaluate(() => document.activeElement?.blur());
  await p.locator('[aria-label="Steps"]').evaluate((el) => { el.scrollTop = 40 * 32; });
  await p.waitForSelector('.step[data-stop="step-41"]');
  await page.keys('j');
  assert.equal(await focused(), 'step-41');
});

for (const width of [1280, 1100, 760, 500]) {
  test(`who decided a step is told at ${width} wide`, { ...guarded, viewport: { width, height: 700 } }, async ({ hub, page, p, given: g }) => {
    await hub.call('POST', '/api/rules', { verdict: 'allow', match: npm });
    await g.step('steps/sessionStart', {});
    await g.ask('Bash', { command: 'npm test' }).answer;
    const gone = await g.call('Bash', { command: 'git pull' });
    gone.leave();
    await page.at(`#/guardian/${encodeURIComponent(g.key)}`);
    await page.says('.step', /npm test[\s\S]*allowed[\s\S]*a rule/);
    await page.says('.step', /git pull[\s\S]*withdrawn[\s\S]*no longer waiting/);
    const cut = await p.locator('.step .judge span').evaluateAll((all) => all.filter((el) => el.checkVisibility() && el.scrollWidth > el.clientWidth + 1 && getComputedStyle(el).overflow !== 'visible').map((el) => el.textContent));
    assert.deepEqual(cut, []);
    const box = await p.locator('.step .judge:not(:empty)').last().boundingBox();
    assert.ok(box !== null && box.width > 20, `who decided has no room: ${JSON.stringify(box)}`);
    if (process.env.DESKBELL_SHOTS) await p.screenshot({ path: `${process.env.DESKBELL_SHOTS}/judge-${width}.png` });
  });
}

test('an exported session can be checked by anybody', guarded, async ({ page, p, given: g }) => {
  await g.step('steps/sessionStart', {});
  await g.prompt('Hello.');
  await g.end();
  await page.at(`#/guardian/${encodeURIComponent(g.key)}`);
  await page.says('main', /sealed at its end/);
  const [file] = await Promise.all([p.waitForEvent('download'), p.click('text=Export')]);
  await page.says('main', /\S+ verify --acs deskbell-acs-[0-9a-f-]+\.jsonl/);
  const lines = readFileSync(await file.path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  assert.equal(lines[0].deskbell, 'acs-session');
  assert.equal(lines.length, 5);
  for (const l of lines.slice(1)) assert.equal(hashOf(l.params), l.entry.request_hash, `step ${l.seq}`);
});

test('unsigned requests are told, with what to do', guarded, async ({ page, given: g }) => {
  const m = g.request('steps/toolCallRequest', { tool: { name: 'Bash' }, arguments: {} });
  assert.equal((await g.post(m)).error.code, -32004);
  await page.keys('g', 'g');
  await page.says('main', /sends unsigned requests[\s\S]*\S+ acs setup claude-code/);
});

test('nothing to guard yet: the one next step', async ({ page }) => {
  await page.keys('g', 'g');
  await page.says('main', /No agent asks here for leave yet[\s\S]*\S+ acs setup claude-code/);
});

test('a long session is light, and goes on while it is looked at', { ...guarded, timeout: 120_000, alone: true, settings: { 'rate_limit.requests_per_minute': 10_000_000 } }, async ({ page, p, given: g }) => {
  const many = Number(process.env.DESKBELL_STEPS ?? 2000);
  let left = many;
  await Promise.all(Array.from({ length: 8 }, async () => { while (left-- > 0) await g.result('Bash'); }));
  const began = Date.now();
  await page.at(`#/guardian/${encodeURIComponent(g.key)}`);
  await page.says('main', new RegExp(`verified, ${many.toLocaleString('en-US')} steps`));
  await page.says('.step .n', new RegExp(`^${many}$`));
  figure(`a session of ${many} steps, to its end: ${Date.now() - began} ms`);
  assert.ok(await p.locator('.step').count() < 80, 'too many steps are in the page');
  await g.result('Read');
  await page.says('.step .n', new RegExp(`^${many + 1}$`));
  await p.evaluate(() => { document.querySelector('[aria-label="Steps"]').scrollTop = 0; });
  await page.says('.step .n', /^1$/);
  await p.evaluate(() => { const e = document.querySelector('[aria-label="Steps"]'); e.scrollTop = e.scrollHeight / 2; });
  await page.says('.step .n', new RegExp(`^${Math.floor(many / 2)}$`));
  await g.result('Read'); // what comes moves nothing that is read
  const place = () => p.evaluate(() => document.querySelector('[aria-label="Steps"]').scrollTop);
  const at = await place();
  await page.says('main', new RegExp(`verified, ${(many + 2).toLocaleString('en-US')} steps`));
  assert.equal(await place(), at);
});

test('a guarded agent is stopped, revoked and let in again; no message can be sent to it', guarded, async ({ hub, page, p, given: g }) => {
  const id = `acs/claude-code/${g.id}`;
  await page.at(`#/agents/${encodeURIComponent(id)}`);
  await page.says('main', /over ACS/);
  assert.equal(await p.locator('main >> text=New message').count(), 0);
  assert.equal(await p.locator('main >> text=Rotate').count(), 0);
  const waits = await g.call('Bash', { command: 'ls' });
  await p.click('text=Stop…');
  await page.says('dialog', /refused until you resume it/);
  await p.click('dialog button:has-text("Stop the agent")');
  assert.deepEqual((await waits.answer).reason_codes, ['agent_stopped']);
  await page.says('main', /Everything it asks is refused until you resume it/);
  await p.click('main .stopped button:has-text("Resume")');
  await until('it to go on', () => p.locator('main .stopped').count(), (n) => n === 0);
  await p.click('text=Revoke…');
  await p.click('dialog button:has-text("Revoke")');
  await page.says('main', /You revoked it/);
  assert.deepEqual((await g.ask('Bash', { command: 'ls' }).answer).reason_codes, ['agent_revoked']);
  await p.click('text=Let it in again');
  await page.says('main', /It proves itself with the hub’s own secret/);
  await page.keys('n');
  await p.locator('dialog input').first().fill('claude');
  await page.says('dialog', /No agent or live session by that name/);
  await page.keys('Escape', 'Escape');
  assert.equal((await hub.call('GET', '/v1/agents')).agents.some((a) => a.agent_id === id), true);
});
