import { assert, figure, test, until } from './harness.mjs';
import { manyItems } from './many.mjs';

const roomy = { settings: { 'rate_limit.requests_per_minute': 10_000_000, 'rate_limit.inbox_depth': 1_000_000 }, timeout: 300_000 };

test('10,000 items', roomy, (context) => manyItems({ ...context, many: 10_000, rounds: 40 }));

test('the first load with 10,000 items', { ...roomy, page: false, before: ({ agent }) => agent.many(10_000, (i) => [`Question ${i}`]) }, async ({ page, p }) => {
  await page.signIn();
  const times = [];
  for (let i = 0; i < 5; i++) {
    await p.reload();
    await until('rows', () => p.evaluate(() => Object.keys(window.seenAt).length), (n) => n > 10);
    times.push(Math.round(await p.evaluate(() => Math.min(...Object.values(window.seenAt)) - performance.timeOrigin)));
  }
  figure(`reload → first rows, 10,000 items: ${times.sort((a, b) => a - b).join(', ')} ms`);
  assert.ok(times[2] < 2000);
});
