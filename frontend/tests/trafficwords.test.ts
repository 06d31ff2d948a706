import { expect, it } from 'vitest';
import { trafficWords } from '../src/lib/trafficwords';

const bot = { agent: 'bot', session: null }, nightly = { agent: 'bot', session: 'nightly' };

it('says in one sentence who may decide a message to an agent', () => {
  expect(trafficWords('question', 'queued', bot)).toBe('Only bot may answer it, and has not collected it yet.');
  expect(trafficWords('task', 'delivered', bot, null)).toBe('Only bot may do it, and has not done it yet.');
});

it('says that any session of the addressee may decide what waits for one', () => {
  expect(trafficWords('question', undefined, nightly, null)).toBe('Only bot may answer it, in any of its sessions. Not collected yet by the session “nightly”.');
  expect(trafficWords('task', 'delivered', nightly, null)).toBe('Only bot may do it, in any of its sessions. Collected by the session “nightly”, not done yet.');
  expect(trafficWords('question', 'queued', { agent: 'bot', session: '' }, null)).toMatch(/^Only bot may answer it, in any of its sessions\. Not collected yet by the session that/);
});

it('names whom the list names, and nobody besides', () => {
  expect(trafficWords('question', 'delivered', bot, ['agent:reviewer'])).toBe('Only reviewer may answer it. Collected by bot, not answered yet.');
  expect(trafficWords('question', 'queued', nightly, ['agent:bot#sess_1'])).toBe('Only bot in its session sess_1 may answer it. Not collected yet by the session “nightly”.');
  expect(trafficWords('task', 'queued', bot, ['agent:a', 'agent:b', 'human:alice'])).toBe('Only a, b or human:alice may do it. Not collected yet by bot.');
  expect(trafficWords('question', 'queued', bot, [])).toBe('Nobody may answer it: its sender allowed nobody. Not collected yet by bot.');
});
