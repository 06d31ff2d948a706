import { expect, it } from 'vitest';
import { endedWords, stateWord, trackName } from '../src/lib/itemwords';

it('has words of its own for what agents say to each other', () => {
  expect(stateWord({ box: 'fleet', kind: 'notice', state: 'delivered' })).toBe('Notice, delivered');
  expect(stateWord({ box: 'fleet', kind: 'notice', state: 'bounced' })).toBe('Notice, bounced');
  expect(stateWord({ box: 'fleet', kind: 'question', state: 'open' })).toBe('Question to an agent');
  expect(trackName({ box: 'fleet', state: 'cancelled' })).toBe('Withdrawn');
  expect(trackName({ box: 'fleet', state: 'cancelled', undelivered: 'bounced' })).toBe('Bounced');
  expect(trackName({ box: 'fleet', state: 'dismissed', undelivered: 'expired' })).toBe('Expired');
  expect(trackName({ box: 'done', state: 'cancelled' })).toBe('Withdrawn');
  expect(stateWord({ box: 'notices', kind: 'notice', state: 'delivered' })).toBe('Notice');
});

it('tells what is snoozed from what waits for somebody else', () => {
  const now = new Date(2026, 10, 29, 22, 0).getTime();
  const row = { box: 'waiting', kind: 'question', state: 'open' } as const;
  expect(stateWord({ ...row, snoozed_until: now + 36 * 60_000 }, now)).toBe('Snoozed until 22:36');
  expect(stateWord({ ...row, snoozed_until: now - 1 }, now)).toBe('Waiting for somebody else');
  expect(stateWord(row, now)).toBe('Waiting for somebody else');
});

it('says how an item ended that was open before the person', () => {
  const outcome = { resolution: 'cancelled', edited: false, actor: 'agent:bot', resolved_at: 1, defaulted: false };
  const end = (d: object) => endedWords({ protocol: 'ma2h', kind: 'question', state: 'cancelled', box: 'done', agent: 'bot', ...d }, 'human:maria');
  expect(end({})).toBe('Withdrawn by bot while you had it open. Nothing was sent.');
  expect(end({ outcome })).toBe('Withdrawn by bot while you had it open. Nothing was sent.');
  expect(end({ outcome: { ...outcome, actor: 'system:agent-gone' } })).toBe('Withdrawn, as the agent is no longer waiting, while you had it open. Nothing was sent.');
  expect(end({ state: 'expired' })).toBe('Expired while you had it open. Nothing was sent.');
  expect(end({ state: 'answered', outcome: { ...outcome, actor: 'human:jo', value: 'x' } })).toBe('Answered by jo while you had it open. Nothing of yours was sent.');
  expect(end({ state: 'answered', outcome: { ...outcome, actor: 'system:default_on_expire', defaulted: true, value: 'x' } })).toBe('Expired while you had it open. Nothing of yours was sent.');
});

it('says of a call that nobody waits for it any more', () => {
  const call = {} as never;
  expect(endedWords({ protocol: 'ma2h', kind: 'question', state: 'cancelled', box: 'done', agent: 'a', call }, 'maria')).toBe('Withdrawn. The agent is no longer waiting. Nothing of yours was sent.');
  const told = { resolution: 'cancelled', edited: false, actor: 'system:agent-gone', resolved_at: 1, defaulted: false, comment: [{ t: 'The hub is closing; nobody can answer this now.' }] };
  expect(endedWords({ protocol: 'ma2h', kind: 'question', state: 'cancelled', box: 'done', agent: 'a', call, outcome: told }, 'maria')).toBe('Withdrawn. The hub is closing; nobody can answer this now. Nothing of yours was sent.');
  expect(endedWords({ protocol: 'ma2h', kind: 'question', state: 'expired', box: 'done', agent: 'a', call }, 'maria')).toMatch(/the hub said no/);
  expect(endedWords({ protocol: 'pi', kind: 'question', state: 'expired', box: 'done', agent: 'a' }, 'maria')).toMatch(/pi went on without you \(counted as no\)/);
});
