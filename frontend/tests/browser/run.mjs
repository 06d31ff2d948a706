// Runs the browser tests, one after the other. Arguments: words that a test's file or name must hold; --bench runs the benches instead.
// DESKBELL_HEADLESS: the program (build/bin/deskbell-headless); DESKBELL_CHROMIUM: the browser (/usr/bin/chromium);
// DESKBELL_SHOTS: a folder for pictures of failed tests.
import { readdirSync } from 'node:fs';
import { close, launch, run, take } from './harness.mjs';

const words = process.argv.slice(2).filter((a) => !a.startsWith('--'));
const suffix = process.argv.includes('--bench') ? '.bench.mjs' : '.test.mjs';
const started = Date.now();
let passed = 0;
const failed = [];

await launch();
for (const file of readdirSync(import.meta.dirname).filter((f) => f.endsWith(suffix)).sort()) {
  await import(`./${file}`);
  const tests = take().filter((t) => words.every((w) => `${file} ${t.name}`.includes(w)));
  if (tests.length) console.log(file);
  for (const t of tests) {
    const began = Date.now();
    try {
      await run(t);
      passed++;
      console.log(`  ok   ${t.name} (${Date.now() - began} ms)`);
    } catch (e) {
      failed.push(`${file}: ${t.name}`);
      console.log(`  FAIL ${t.name} (${Date.now() - began} ms)\n${String(e?.stack ?? e).split('\n').slice(0, 60).map((l) => `       ${l}`).join('\n')}`);
    }
  }
}
await close();
for (const name of failed) console.log(`failed: ${name}`);
console.log(`took ${((Date.now() - started) / 1000).toFixed(1)} s`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length || !passed ? 1 : 0);
