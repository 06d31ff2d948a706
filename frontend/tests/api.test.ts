import { expect, it } from 'vitest';
import { inWords as refusal } from '../src/lib/api';

it('makes a sentence of a refusal, without its pointer', () => {
  expect(refusal('/agent_id: an agent id cannot contain "#"', [{ pointer: '/agent_id' }])).toBe('An agent id cannot contain "#".');
  expect(refusal('The hub is busy.')).toBe('The hub is busy.');
});
