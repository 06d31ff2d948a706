import { assert, test } from './harness.mjs';
import { manyItems } from './many.mjs';

test('three thousand items: light, quick, and still', { settings: { 'rate_limit.requests_per_minute': 10_000_000 }, timeout: 120_000, alone: true }, async (context) => {
  const { median, arrival } = await manyItems({ ...context, many: 3000, rounds: 15 });
  assert.ok(median < 300, `a key takes ${median} ms`); // the bench holds the bar; this only notices that something is wrong
  assert.ok(arrival < 1000, `an arrival takes ${arrival} ms`);
});
