// Runs the browser tests: some lanes side by side, and then, one after the other, those that want to be alone.
// Arguments: words that a test's file or name must hold; --bench runs the benches instead.
// DESKBELL_HEADLESS: the program (build/bin/deskbell-headless); DESKBELL_CHROMIUM: the browser (/usr/bin/chromium);
// DESKBELL_SHOTS: a folder for pictures of failed tests.
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { launch, run, take } from './harness.mjs';

/** One more than can compute at once: a test waits a third of its time. */
const LANES = availableParallelism() + 1;
const words = process.argv.slice(2).filter((a) => !a.startsWith('--'));
const bench = process.argv.includes('--bench');
const started = Date.now();
let passed = 0;
const failed = [];

const all = [];
for (const file of readdirSync(import.meta.dirname).filter((f) => f.endsWith(bench ? '.bench.mjs' : '.test.mjs')).sort()) {
  await import(`./${file}`);
  for (const t of take()) all.push({ ...t, called: `${file}: ${t.name}` });
}
const chosen = all.filter((t) => words.every((w) => t.called.includes(w)));
// What may take long begins first, so that no lane is left with it at the end.
const together = chosen.filter((t) => !bench && !t.alone).sort((a, b) => (b.timeout ?? 0) - (a.timeout ?? 0));
const alone = chosen.filter((t) => bench || t.alone);

/** Takes tests from the queue until it is empty. Each has a hub of its own, so any may run beside any. */
async function lane(queue) {
  const browser = await launch();
  for (let t = queue.shift(); t; t = queue.shift()) {
    const began = Date.now();
    const took = () => `${t.called} (${Date.now() - began} ms)`;
    try {
      const figures = await run(t, browser);
      passed++;
      console.log([`  ok   ${took()}`, ...figures.map((f) => `         ${f}`)].join('\n'));
    } catch (e) {
      failed.push(t.called);
      console.log(`  FAIL ${took()}\n${String(e?.stack ?? e).split('\n').slice(0, 60).map((l) => `         ${l}`).join('\n')}`);
    }
  }
  await browser.close();
}

await Promise.all(Array.from({ length: Math.min(LANES, together.length) }, () => lane(together)));
if (alone.length > 0) await lane(alone);
for (const name of failed) console.log(`failed: ${name}`);
console.log(`took ${((Date.now() - started) / 1000).toFixed(1)} s`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length || !passed ? 1 : 0);
