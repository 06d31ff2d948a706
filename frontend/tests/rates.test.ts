import { expect, it } from 'vitest';
import { budgetWords, spanWords } from '../src/lib/ratewords';

it('says how far back a rate looks', () => {
  expect([3_600_000, 86_400_000, 604_800_000].map(spanWords)).toEqual(['hour', 'day', '7 days']);
});

it('says what is left of a budget', () => {
  expect(budgetWords({ kind: 'person', per_minute: 60, left: 60, refused: 0 })).toBe('Messages to you: 60 a minute, all of them are left.');
  expect(budgetWords({ kind: 'agents', per_minute: 60, left: 7, refused: 0 })).toBe('Messages to other agents: 60 a minute, 7 are left now.');
  expect(budgetWords({ kind: 'sessions', per_minute: 60, left: 0, refused: 3 })).toBe('New sessions: 60 a minute, none is left now.');
});
