import { expect, it } from 'vitest';
import { failWords, Refused, stale, Unreachable, unsure } from '../src/lib/api';

it('says what the hub has against something, and of a silent hub what that means', () => {
  expect(failWords(new Refused(409, 'conflict', 'It was answered already.'), unsure)).toBe('It was answered already.');
  expect(failWords(new Unreachable(), stale)).toBe('The hub does not answer. What is shown may be old.');
  expect(failWords(new Unreachable())).toBe('The hub does not answer.');
});

it('claims of no act that it was not done: the answer alone may have been lost', () => {
  expect(failWords(new Unreachable(), unsure)).toBe('The hub does not answer. Whether this was done shows when it is back.');
});
