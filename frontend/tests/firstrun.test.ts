import { describe, expect, it } from 'vitest';
import { arrivedWords, inFirstRun, nextToShow } from '../src/lib/firstrun';
import type { Detail, Row } from '../src/lib/types';

const row = (id: string, at: number, state: Row['state'] = 'open') => ({ id, state, received_at: at });
const shown = (id: string, state: Detail['state'], at?: number) => ({ id, state, resolved_at: at });

describe('the question that the first run shows', () => {
  it('is the first that waits, and stays while it is open', () => {
    expect(nextToShow([], null, null)).toBeNull();
    expect(nextToShow([row('a', 1), row('b', 2)], null, null)).toBe('a');
    expect(nextToShow([row('a', 1), row('b', 2)], 'b', shown('b', 'open'))).toBeNull();
    expect(nextToShow([row('a', 1), row('b', 2)], 'b', null)).toBeNull(); // still loading
  });
  it('gives way after its end only to what came since', () => {
    expect(nextToShow([row('b', 2)], 'a', shown('a', 'answered', 5))).toBeNull();
    expect(nextToShow([row('b', 2), row('c', 6)], 'a', shown('a', 'answered', 5))).toBe('c');
    expect(nextToShow([row('c', 6)], 'a', shown('a', 'answered'))).toBeNull();
  });
  it('leaves the inbox’s own commands alone', () => {
    for (const id of ['next', 'go-needs', 'archive', 'snooze', 'open', 'palette'] as const) expect(inFirstRun.has(id)).toBe(false);
  });
});

describe('what it says of an answer', () => {
  const of = (d: object) => arrivedWords({ state: 'answered', box: 'done', agent: 'bot', outcome: { actor: 'human:maria' }, ...d } as unknown as Detail, 'maria');
  it('claims that it arrived only when it did', () => {
    expect(of({})).toBe('Answered. bot has not collected it yet.');
    expect(of({ push: { state: 'pending' } })).toBe('Answered. bot has not collected it yet.');
    expect(of({ push: { state: 'delivered' } })).toBe('Your answer arrived: bot has it.');
    expect(of({ track: { state: 'delivered-to-agent' } })).toBe('Your answer arrived: bot has it.');
    expect(of({ track: { state: 'expired' } })).toBe('Answered. bot has not collected it yet.');
    expect(of({ held: true, verdict: 'deny' })).toBe('Your answer arrived: bot has it.');
  });
  it('claims nothing of the person that was not theirs', () => {
    expect(of({ state: 'expired', outcome: undefined })).toBe('Expired.');
    expect(of({ state: 'cancelled' })).toBe('Withdrawn.');
    expect(of({ outcome: { actor: 'human:paul' } })).toBe('Answered by paul.');
  });
});
