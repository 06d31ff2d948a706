import { expect, it } from 'vitest';
import { bounceWords, closedWords, revokeWords, stopWords } from '../src/lib/endwords';

it('says that what was collected and not acknowledged bounces too, and how asks and tasks end', () => {
  for (const said of [bounceWords(1), stopWords(1), stopWords(3), revokeWords(2)]) {
    expect(said).toMatch(/not acknowledged bounces, even if it was collected: open tasks among it end dismissed, open asks cancelled/);
    expect(said).toMatch(/Asks and tasks that were acknowledged stay open/);
    expect(said).not.toMatch(/undelivered|withdrawn/);
  }
  expect(stopWords(0)).toBe('It has no live session.');
  expect(revokeWords(0)).toBe('');
  expect(revokeWords(1)).toMatch(/^Its 1 live session ends\. What was sent to it alone and it has not/);
});

it('calls closed only what it closed', () => {
  expect(closedWords({ state: 'closed', closed_by_operator: true })).toBe('Session closed');
  expect(closedWords({ state: 'expired' })).toBe('Its lease had run out before. The agent is stopped now');
  expect(closedWords({ state: 'closed' })).toBe('It had been closed before. The agent is stopped now');
});
