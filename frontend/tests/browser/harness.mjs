// What a browser test is made of. Each gets a hub, an agent and a signed-in page of its own, and fails when the page logs an
// error, breaks its content policy, or makes a call that the hub refuses without the test having said so.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { Hub } from './hub.mjs';

export { assert };

const tests = [];

/**
 * Registers a test. Options: settings (of the hub), viewport, scheme, motion, contrast, hash (where the page opens),
 * agent: false (a hub without any), page: false (the test opens its own), refusals (statuses that may be answered),
 * before ({hub, agent}) => what the test gets as `given`, timeout.
 */
export function test(name, options, body) {
  tests.push({ name, ...(body ? options : {}), body: body ?? options });
}

export const take = () => tests.splice(0);

let browser;
export async function launch() {
  browser = await chromium.launch({
    executablePath: process.env.DESKBELL_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
      '--disable-dev-shm-usage'],
  });
}
export const close = () => browser.close();

/** Runs before the page's own scripts: notes what breaks the policy, and when each row was first there. */
function watch() {
  window.brokenPolicy = [];
  document.addEventListener('securitypolicyviolation', (e) => window.brokenPolicy.push(`${e.violatedDirective} ${e.blockedURI}`));
  window.seenAt = {};
  const note = () => {
    for (const row of document.querySelectorAll('.row[data-id]')) window.seenAt[row.dataset.id] ??= performance.timeOrigin + performance.now();
  };
  new MutationObserver(note).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-id'] });
}

/** What comes, or after three seconds something else. */
const soon = (coming, instead) => Promise.race([coming, new Promise((then) => setTimeout(() => then(instead), 3000).unref())]);

export class Page {
  /** A page in a browser profile of its own, not yet anywhere. */
  static async fresh(hub, { viewport = { width: 1280, height: 800 }, scheme = 'light', motion = 'no-preference', contrast = 'no-preference', scale = 1, refusals = [] } = {}) {
    const page = new Page();
    page.hub = hub;
    page.refusals = refusals;
    page.problems = [];
    page.context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion: motion, contrast, deviceScaleFactor: scale, permissions: ['clipboard-read', 'clipboard-write'] });
    const p = page.p = await page.context.newPage();
    p.setDefaultTimeout(8000);
    p.on('console', (m) => { if (['error', 'warning'].includes(m.type())) page.problems.push(`console: ${m.text()}`); });
    p.on('pageerror', (e) => page.problems.push(`error: ${e.stack ?? e}`));
    p.on('request', (r) => { if (!r.url().startsWith(hub.url) && !r.url().startsWith('data:') && !r.url().startsWith('about:')) page.problems.push(`left the hub: ${r.url()}`); });
    await p.addInitScript(watch);
    return page;
  }

  async signIn(hash = '') {
    await this.p.goto(`${this.hub.url}/#ticket=${await this.hub.ticket()}`);
    await this.live(); // signed in, and not only about to be
    if (hash) await this.at(hash);
  }

  /** Goes to an address inside the page, afresh. */
  async at(hash) {
    await this.p.goto('about:blank');
    await this.p.goto(`${this.hub.url}/${hash}`);
    await this.live();
  }

  live() {
    return this.p.waitForSelector('nav button.live, [data-first-run]', { timeout: 8000 });
  }

  /** What must not have happened. */
  async complaints() {
    const broken = this.p.isClosed() ? [] : await soon(this.p.evaluate(() => window.brokenPolicy), ['the page stands still']).catch(() => []);
    const expected = (text) => this.refusals.some((r) => text.includes('Failed to load resource') && (r === 'offline' ? /ERR_|status of 50[234]/.test(text) : text.includes(`status of ${r}`)));
    return [...broken.map((b) => `policy: ${b}`), ...this.problems.filter((t) => !expected(t))];
  }

  /** Presses keys one after the other, at a person's pace. */
  async keys(...all) {
    for (const key of all) {
      await this.p.keyboard.press(key);
      await this.p.waitForTimeout(60);
    }
  }

  /** Waits out the moment in which a decision pressed right after the last one is refused. */
  armed() {
    return this.p.waitForFunction(() => !document.querySelector('[data-decision] :is(.off, [data-settling])')).then(() => this.p.waitForTimeout(50));
  }

  selected() {
    return this.p.evaluate(() => document.querySelector('.row.selected')?.dataset.id ?? null);
  }

  ids() {
    return this.p.evaluate(() => [...document.querySelectorAll('.row[data-id]')].sort((a, b) => a.ariaPosInSet - b.ariaPosInSet).map((r) => r.dataset.id));
  }

  row(id) {
    return this.p.locator(`.row[data-id="${id}"]`);
  }

  /** Selects an item by pointer and waits until its whole content is there. */
  async open(id) {
    await this.row(id).click();
    await this.shown(id);
  }

  async shown(id) {
    await this.p.waitForFunction((x) => document.querySelector('.row.selected')?.dataset.id === x && document.querySelector('[data-decision]'), id);
    await this.armed();
  }

  decision() {
    return this.p.locator('[data-decision]');
  }

  async says(selector, pattern) {
    try {
      await this.p.waitForFunction(([s, source, flags]) => [...document.querySelectorAll(s)].some((e) => new RegExp(source, flags).test(e.innerText)), [selector, pattern.source, pattern.flags]);
    } catch {
      assert.fail(`${selector} never said ${pattern}; it says: ${(await this.p.locator(selector).allInnerTexts()).join(' | ')}`);
    }
  }

  title(pattern) {
    return this.p.waitForFunction((t) => document.title === t, pattern);
  }
}

/** Waits until a call of `get` satisfies `ok`, and returns what it gave. */
export async function until(what, get, ok = Boolean, ms = 8000) {
  const end = Date.now() + ms;
  for (;;) {
    const got = await get();
    if (ok(got)) return got;
    if (Date.now() > end) assert.fail(`waited in vain for ${what}; last: ${JSON.stringify(got)}`);
    await new Promise((r) => setTimeout(r, 25));
  }
}

export const figures = [];
/** A number worth reading in the output. */
export function figure(text) {
  figures.push(text);
  console.log(`     ${text}`);
}

export async function run(t) {
  const limit = t.timeout ?? 30_000;
  const hub = await Hub.start({ settings: t.settings });
  let page;
  try {
    const agent = t.agent === false ? undefined : await hub.agent();
    const given = await t.before?.({ hub, agent });
    page = await Page.fresh(hub, t);
    const hash = typeof t.hash === 'function' ? t.hash(given) : t.hash;
    if (t.page !== false) await page.signIn(hash);
    let timer;
    await Promise.race([
      t.body({ hub, agent, page, p: page.p, given }),
      new Promise((_, no) => { timer = setTimeout(() => no(new Error(`not done within ${limit} ms`)), limit); }),
    ]).finally(() => clearTimeout(timer));
    const complaints = await page.complaints();
    if (complaints.length) throw new Error(`the page complained:\n  ${complaints.join('\n  ')}`);
  } catch (e) {
    if (page && process.env.DESKBELL_SHOTS) await page.p.screenshot({ path: `${process.env.DESKBELL_SHOTS}/${t.name.replaceAll(/\W+/g, '-')}.png` }).catch(() => {});
    const complaints = page ? await page.complaints() : [];
    if (complaints.length) e.message += `\n  (the page complained: ${complaints.join('; ')})`;
    throw e;
  } finally {
    if (page) await soon(page.context.close());
    await hub.end();
  }
}
