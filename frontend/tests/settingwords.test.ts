import { describe, expect, it } from 'vitest';
import { grouped, inWords, objection } from '../src/lib/settingwords';

it('groups only the settings that there are', () => {
  const groups = grouped({ retention_days: 90, 'x.y': 1 });
  expect(groups.map((g) => g.settings.map((s) => s.key))).toEqual([['retention_days'], ['x.y']]);
});

describe('the words of settings', () => {
  it.each([[59, ''], [60, '1 minute'], [90, '1 minute 30 seconds'], [86_400, '1 day'], [90_000, '1 day 1 hour']])('%d s → %s', (n, want) => expect(inWords(n)).toBe(want));
  it('makes a sentence of an objection', () => {
    expect(objection('must be between 1 and 3650')).toBe('Must be between 1 and 3,650.');
    expect(objection('may not be longer than the presence window (presence.freshness_seconds, 90 s)')).toBe('May not be longer than the presence window (“Counts as listening”, 90 s).');
  });
});
