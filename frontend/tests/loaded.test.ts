import { flushSync } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

vi.mock('../src/lib/desk.svelte', async () => ({ desk: (await import('./revs.svelte')).desk }));

const { desk, onScreen } = await import('./revs.svelte');
const { Loaded } = await import('../src/lib/loaded.svelte');

let asked = 0;
let answer: () => Promise<number> = async () => asked;
const made = (every = 0) => new Loaded(() => { asked++; return answer(); }, 0, ['map'], every);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { visibilityState: 'visible' });
  asked = 0;
  answer = async () => asked;
});
afterEach(() => { vi.useRealTimers(); vi.unstubAllGlobals(); });

it('is loaded once for a change, however many show it, and not at all once nobody does', async () => {
  const it = made();
  const leave = [onScreen(() => it.follow()), onScreen(() => it.follow())];
  await vi.advanceTimersByTimeAsync(1000);
  expect([asked, it.it, it.loaded]).toEqual([1, 1, true]);
  desk.rev.map++;
  flushSync();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(2);
  leave[0]?.();
  desk.rev.map++;
  flushSync();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(3);
  leave[1]?.();
  desk.rev.map++;
  flushSync();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(3);
});

it('is asked for by one clock, where it changes without an event', async () => {
  const it = made(10_000);
  const leave = [onScreen(() => it.follow()), onScreen(() => it.follow()), onScreen(() => it.follow())];
  await vi.advanceTimersByTimeAsync(25_000);
  expect(asked).toBe(3);
  for (const l of leave) l();
  await vi.advanceTimersByTimeAsync(25_000);
  expect(asked).toBe(3);
});

it('says what is in the way, and keeps what it has', async () => {
  const it = made();
  await it.load();
  answer = () => Promise.reject(new Error('no way'));
  await it.load();
  expect([it.it, it.problem]).toEqual([1, 'The hub does not answer. What is shown may be old.']);
  expect(desk.noticed).toHaveBeenCalledOnce();
});
