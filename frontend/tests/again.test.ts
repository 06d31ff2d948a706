import { expect, it, vi } from 'vitest';
import { shared } from '../src/lib/again';

it('loads once at a time, and once more for all who asked meanwhile', async () => {
  vi.useFakeTimers();
  let n = 0;
  const done: (() => void)[] = [];
  const load = shared(() => { n++; return new Promise((r) => done.push(r)); }, 100);
  const first = load();
  const second = load();
  const third = load();
  expect(second).toBe(third);
  expect(n).toBe(1);
  done[0]?.();
  await first;
  await vi.advanceTimersByTimeAsync(99);
  expect(n).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(n).toBe(2);
  done[1]?.();
  await second;
  void load();
  expect(n).toBe(3);
  vi.useRealTimers();
});
