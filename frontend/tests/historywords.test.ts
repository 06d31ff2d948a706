import { describe, expect, it } from 'vitest';
import { historyWords } from '../src/lib/historywords';

describe('the words of a history', () => {
  const said = (action: string, actor: string) => historyWords({ at: 0, actor, action, note: [{ t: 'N' }] }, 'human:maria');
  it('has the words of the receipt', () => {
    expect(said('delivered-to-agent', 'agent:bot')).toMatchObject({ word: 'Reached the agent', by: 'bot' });
    expect(said('cancelled', 'agent:bot').word).toBe('Withdrawn');
    expect(said('cancelled', 'system:undeliverable')).toEqual({ word: 'Ended, as it reaches nobody any more', by: '' });
    expect(said('operator allowed to answer', 'human:maria')).toEqual({ word: 'You allowed yourself to answer', by: '', note: [{ t: 'N' }] });
    expect(said('operator allowed to answer', 'human:ada').by).toBe('ada');
  });
});
