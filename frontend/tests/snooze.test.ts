import { expect, it } from 'vitest';
import { snoozes } from '../src/lib/snooze';

it('offers moments that are still to come', () => {
  for (const hour of [0, 9, 17, 23]) {
    const now = new Date(2026, 10, 29, hour, 30).getTime();
    const list = snoozes(now);
    expect(list.every((s) => s.at > now)).toBe(true);
    expect(new Set(list.map((s) => s.at)).size).toBe(list.length);
  }
});
