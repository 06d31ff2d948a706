// What a long list does, for the test (some thousand items) and the bench (ten thousand).
import { assert, figure, until } from './harness.mjs';

const spread = (ms) => {
  const s = [...ms].sort((a, b) => a - b);
  return { median: s[Math.floor(s.length / 2)], p95: s[Math.floor(s.length * 0.95)], worst: s.at(-1), n: s.length };
};
const say = (what, ms) => {
  const { median, p95, worst, n } = spread(ms);
  figure(`${what}: median ${median.toFixed(0)} ms, 95 % ${p95.toFixed(0)} ms, worst ${worst.toFixed(0)} ms (${n})`);
  return median;
};

/** Notes, for each key, when the answer form of the item that it selects was painted: the frame after its choices were in the page. */
function timeKeys() {
  window.took = [];
  let pressed = 0;
  let before = '';
  const title = () => document.querySelector('h2')?.innerText ?? '';
  addEventListener('keydown', (e) => { pressed = e.timeStamp; before = title(); }, true);
  new MutationObserver(() => {
    if (!pressed || title() === before || !document.querySelector('[data-decision] li button')) return;
    const from = pressed;
    pressed = 0;
    requestAnimationFrame(() => {
      const c = new MessageChannel();
      c.port1.onmessage = () => window.took.push(performance.now() - from);
      c.port2.postMessage(0);
    });
  }).observe(document, { childList: true, subtree: true, characterData: true });
}

export async function manyItems({ agent, page, p, many, rounds }) {
  const began = Date.now();
  await agent.many(many, (i) => [`Question ${i}: shall this be done?`, { body: 'Some **words** about it.\n\n```\nand code\n```' }]);
  figure(`${many} items posted in ${((Date.now() - began) / 1000).toFixed(1)} s`);
  await p.reload();
  await until('the list', () => p.locator(`.row[aria-setsize="${many}"]`).count(), (n) => n > 0);
  assert.ok(await p.locator('.row[data-id]').count() < 60, 'too many rows are in the page');
  await p.evaluate(timeKeys);
  for (let i = 0; i < rounds; i++) {
    await page.keys('j');
  }
  const took = await p.evaluate(() => window.took);
  assert.ok(took.length >= rounds * 0.9, `only ${took.length} of ${rounds} keys were timed`);
  const median = say(`key → painted answer form, ${many} items`, took);

  const late = [];
  for (let i = 0; i < Math.min(rounds, 20); i++) {
    const id = await agent.ask(`Now ${i}`, { priority: 'urgent' });
    const at = await p.evaluate(() => { document.querySelector('[data-list]').scrollTop = 0; }).then(() => p.waitForFunction((x) => window.seenAt[x], id)).then((h) => h.jsonValue());
    late.push(Math.max(0, at - agent.acceptedAt));
    await page.settled();
  }
  const arrival = say(`new item, 202 → row in the page, ${many} items`, late);
  const total = many + late.length;

  // To the end by scrolling, and by key; then deep in the list nothing moves under an arrival.
  const from = Date.now();
  await p.evaluate(() => { const e = document.querySelector('[data-list]'); e.scrollTop = e.scrollHeight; });
  await p.waitForFunction((n) => document.querySelector(`.row[aria-posinset="${n}"]`), total, { timeout: 30_000 });
  figure(`scrolled to the end of ${total}: ${Date.now() - from} ms`);
  await p.evaluate(() => { document.querySelector('[data-list]').scrollTop -= 3000; });
  await page.settled();
  const place = () => p.evaluate(() => {
    const top = document.querySelector('[data-list]').getBoundingClientRect().top;
    window.mark ??= [...document.querySelectorAll('.row[data-id]')].filter((r) => r.getBoundingClientRect().top >= top).sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0].dataset.id;
    return [window.mark, document.querySelector(`[data-id="${window.mark}"]`)?.getBoundingClientRect().top];
  });
  const before = await place();
  await agent.ask('At the top', { priority: 'urgent' });
  await until('the list to be put in order, at leisure', () => p.locator(`.row[aria-setsize="${total + 1}"]`).count(), (n) => n > 0);
  await page.settled();
  assert.deepEqual(await place(), before, 'an arrival moved the rows');
  await page.keys('End');
  await until('the last item', () => p.evaluate(() => document.querySelector('.row.selected')?.ariaPosInSet), (n) => Number(n) > many);
  await page.keys('Home');
  await until('the first item', () => p.evaluate(() => document.querySelector('.row.selected')?.ariaPosInSet), (n) => n === '1');
  await page.says('[data-decision]', /Ship to prod now/);
  return { median, arrival };
}
