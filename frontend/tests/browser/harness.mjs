// What a browser test is made of. Each gets a hub, an agent and a signed-in page of its own, and fails when the page logs an
// error, breaks its content policy, or makes a call that the hub refuses without the test having said so.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { chromium } from 'playwright-core';
import { Hub } from './hub.mjs';

export { assert };

const tests = [];

/**
 * Registers a test. Options: settings (of the hub), viewport, scheme, motion, contrast, hash (where the page opens),
 * agent: false (a hub without any), page: false (the test opens its own), refusals (statuses that may be answered),
 * before ({hub, agent}) => what the test gets as `given`, timeout, alone: true (it measures, or makes much work: nothing runs beside it).
 */
export function test(name, options, body) {
  tests.push({ name, ...(body ? options : {}), body: body ?? options });
}

export const take = () => tests.splice(0);

/** A browser of its own for each lane of tests: what pages share (the clipboard, for one) is never two tests'. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.DESKBELL_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
      '--disable-dev-shm-usage'],
  });
}

/** Runs before the page's own scripts: notes what breaks the policy, when each row was first there, and what is under way. */
function watch() {
  window.brokenPolicy = [];
  document.addEventListener('securitypolicyviolation', (e) => window.brokenPolicy.push(`${e.violatedDirective} ${e.blockedURI}`));
  window.seenAt = {};
  const note = () => {
    for (const row of document.querySelectorAll('.row[data-id]')) window.seenAt[row.dataset.id] ??= performance.timeOrigin + performance.now();
  };
  new MutationObserver(note).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-id'] });

  // Under way are: calls until their answer was read, steps that were put off for a moment, and what moves for a moment.
  const MOMENT_MS = 400;
  const STUTTER_MS = 45; // a key that comes again sooner is taken for a stutter of the keyboard
  const { fetch, setTimeout, clearTimeout } = window;
  const begun = new Map();
  let released = -STUTTER_MS;
  let scrolled = false;
  addEventListener('scroll', () => { scrolled = true; }, true);
  addEventListener('keyup', () => { released = performance.now(); }, true);
  const track = (what, promise) => {
    const mark = {};
    begun.set(mark, what);
    const end = () => setTimeout(() => begun.delete(mark)); // once those who waited for it went on
    promise.then(end, end);
    return promise;
  };
  window.fetch = (...call) => track(`${call[1]?.method ?? 'GET'} ${call[0]}`, fetch(...call).then((response) => {
    for (const part of ['text', 'json', 'blob']) {
      const read = response[part].bind(response);
      response[part] = () => track(`the answer to ${call[0]}`, read());
    }
    return response;
  }));
  window.setTimeout = (step, ms = 0, ...given) => {
    if (ms > MOMENT_MS) return setTimeout(step, ms, ...given);
    const id = setTimeout(() => { begun.delete(id); step(...given); }, ms);
    begun.set(id, `a step after ${ms} ms`);
    return id;
  };
  window.clearTimeout = (id) => { begun.delete(id); clearTimeout(id); };
  window.underWay = () => [...begun.values(), ...(performance.now() < released + STUTTER_MS ? ['a key just released'] : []),
    ...document.getAnimations().filter((a) => a.playState === 'running' && a.effect.getComputedTiming().endTime <= MOMENT_MS).map((a) => a.animationName ?? a.transitionProperty)];
  let asked = 0;
  let still = 0;
  /** Called once a frame: whether nothing was under way for some frames in a row. */
  window.atRest = (asking) => {
    if (asking !== asked) still = 0;
    asked = asking;
    still = scrolled || window.underWay().length > 0 ? 0 : still + 1;
    scrolled = false;
    return still > 2;
  };
}

/** How long a test waits for what must come. Nothing is claimed by it: what has to be quick is measured. */
const PATIENCE_MS = 15_000;
let askings = 0;

/** What comes, or, when it does not come in time, something else. */
const soon = (coming, instead) => Promise.race([coming, new Promise((then) => setTimeout(() => then(instead), PATIENCE_MS).unref())]);

export class Page {
  /** A page in a browser profile of its own, not yet anywhere. */
  static async fresh(hub, browser, { viewport = { width: 1280, height: 800 }, scheme = 'light', motion = 'no-preference', contrast = 'no-preference', scale = 1, refusals = [] } = {}) {
    const page = new Page();
    page.hub = hub;
    page.refusals = refusals;
    page.problems = [];
    page.context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion: motion, contrast, deviceScaleFactor: scale, permissions: ['clipboard-read', 'clipboard-write'] });
    const p = page.p = await page.context.newPage();
    p.setDefaultTimeout(PATIENCE_MS);
    p.on('console', (m) => { if (['error', 'warning'].includes(m.type())) page.problems.push(`console: ${m.text()}${m.location().url && ` (${m.location().url})`}`); });
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
    return this.p.waitForSelector('nav button.live, [data-first-run]').then(() => this.settled());
  }

  /** What must not have happened. */
  async complaints() {
    const broken = this.p.isClosed() ? [] : await soon(this.p.evaluate(() => window.brokenPolicy), ['the page stands still']).catch(() => []);
    const expected = (text) => this.refusals.some((r) => text.includes('Failed to load resource') && (r === 'offline' ? /ERR_|status of 50[234]/.test(text) : text.includes(`status of ${r}`)));
    return [...broken.map((b) => `policy: ${b}`), ...this.problems.filter((t) => !expected(t))];
  }

  /** Waits until what was done has had its effect: no call is under way, no step put off, nothing moves. */
  async settled() {
    try {
      await this.p.waitForFunction((asking) => window.atRest(asking), ++askings);
    } catch (e) {
      if (this.p.isClosed()) throw e;
      assert.fail(`the page never came to rest; under way: ${(await this.p.evaluate(() => window.underWay())).join(', ')}`);
    }
  }

  /** Presses keys one after the other, as somebody does who looks at what each does; the two of a sequence at once. */
  async keys(...all) {
    for (const [i, key] of all.entries()) {
      await this.p.keyboard.press(key);
      if (key !== 'g' || i === all.length - 1) await this.settled();
    }
  }

  /** Presses keys in the very moment in which an item comes up as the next one, sooner than any hand could. */
  async keysWhenNext(id, ...all) {
    await this.p.evaluate(([next, keys]) => {
      const watch = new MutationObserver(() => {
        if (document.querySelector('.row.selected')?.dataset.id !== next || !document.querySelector('[data-decision] li button')) return;
        watch.disconnect();
        for (const key of keys) {
          const code = /\d/.test(key) ? `Digit${key}` : `Key${key.toUpperCase()}`;
          for (const type of ['keydown', 'keyup']) window.dispatchEvent(new KeyboardEvent(type, { key, code, bubbles: true }));
        }
        window.pressedWhenNext = next;
      });
      watch.observe(document, { childList: true, subtree: true, attributes: true });
    }, [id, all]);
    return { pressed: () => this.p.waitForFunction((x) => window.pressedWhenNext === x, id).then(() => this.settled()) };
  }

  /** Waits out the moment in which a decision pressed right after the last one is refused. */
  armed() {
    return this.p.waitForFunction(() => !document.querySelector('[data-decision] :is(.off, [data-settling])')).then(() => this.settled());
  }

  /** How long the page has kept a processor busy so far, in ms: what it takes, whatever else the machine does meanwhile. */
  async worked() {
    if (!this.cdp) {
      this.cdp = await this.context.newCDPSession(this.p);
      await this.cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    }
    const { metrics } = await this.cdp.send('Performance.getMetrics');
    return 1000 * metrics.find((m) => m.name === 'ThreadTime').value;
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
    // In a narrow window the list may be hidden, and its selected row not in the page: the address says what is open.
    await this.p.waitForFunction((x) => decodeURIComponent(location.hash.split('/')[2] ?? '') === x && document.querySelector('[data-decision]'), id);
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
    await this.settled();
  }

  title(text) {
    return this.p.waitForFunction((t) => document.title === t, text).then(() => this.settled());
  }
}

/** Waits until a call of `get` satisfies `ok`, and returns what it gave. */
export async function until(what, get, ok = Boolean, ms = PATIENCE_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const got = await get();
    if (ok(got)) return got;
    if (Date.now() > end) assert.fail(`waited in vain for ${what}; last: ${JSON.stringify(got)}`);
    await new Promise((r) => setTimeout(r, 25));
  }
}

const said = new AsyncLocalStorage();
/** A number worth reading in the output of the test. */
export const figure = (text) => said.getStore().push(text);

/** Runs one test in a browser; returns the figures it told. */
export async function run(t, browser) {
  const figures = [];
  await said.run(figures, () => runIn(t, browser));
  return figures;
}

async function runIn(t, browser) {
  const limit = t.timeout ?? 60_000;
  const hub = await Hub.start({ settings: t.settings });
  let page;
  try {
    const agent = t.agent === false ? undefined : await hub.agent();
    const given = await t.before?.({ hub, agent });
    page = await Page.fresh(hub, browser, t);
    const hash = typeof t.hash === 'function' ? t.hash(given) : t.hash;
    if (t.page !== false) await page.signIn(hash);
    let timer;
    await Promise.race([
      t.body({ hub, agent, page, p: page.p, given, browser }),
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
