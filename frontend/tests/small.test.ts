import { historyWords } from '../src/lib/historywords';
import { inWords, objection } from '../src/lib/settingwords';
import { describe, expect, it, vi } from 'vitest';

vi.mock('../src/lib/reader.svelte', () => ({ reader: {} }));
vi.mock('../src/lib/inbox.svelte', () => ({ inbox: {} }));

import { inWords as refusal } from '../src/lib/api';
import { address, parseAddress } from '../src/lib/address.svelte';
import { askCurl } from '../src/lib/curl';
import { named, ranked, score } from '../src/lib/palette';
import { endedWords, stateWord, trackName } from '../src/lib/itemwords';
import { grouped } from '../src/lib/settingwords';
import { snoozes } from '../src/lib/snooze';

describe('address', () => {
  it('goes there and back', () => {
    for (const place of [{ view: 'needs', id: 'msg_a/b' }, { view: 'agents', id: null }, { view: 'agents', id: 'a/b#é' }, { view: 'fleet', id: 'msg_1' }, { view: 'sent', id: null }, { view: 'guardian', id: 'acs/5c3f' }, { view: 'rules', id: 'rule_1' }] as const) expect(parseAddress(address(place))).toEqual(place);
  });
  it('takes no nonsense', () => {
    for (const hash of ['', '#ticket=x', '#/nowhere/1']) expect(parseAddress(hash)).toBeNull();
    expect(parseAddress('#/sent/x')).toEqual({ view: 'sent', id: null });
    expect(parseAddress('#/needs/%E0%A4%A')).toEqual({ view: 'needs', id: null });
  });
});

describe('the first ask', () => {
  const curl = askCurl({ url: 'http://127.0.0.1:6224/', agent: "o'brien/bot", token: 'tok', operator: 'maria', key: 'k1', at: '2026-01-01T00:00:00Z' });
  it('is a whole message to the operator', () => {
    const body = /-d '(.+?)' \\\n/s.exec(curl)?.[1]?.replaceAll(`'\\''`, "'") ?? '';
    expect(JSON.parse(body)).toMatchObject({
      type: 'ask', idempotency_key: 'k1', created_at: '2026-01-01T00:00:00Z', agent: { id: "o'brien/bot", runtime: 'cli' }, request: { mode: 'select', allowed_resolvers: ['human:maria'] },
    });
  });
  it('goes to the hub with the token', () => {
    expect(curl).toContain("'http://127.0.0.1:6224/v1/messages'");
    expect(curl).toContain("'Authorization: Bearer tok'");
  });
});

describe('palette', () => {
  it('tells the archive from putting something there', () => {
    const labels = ranked('archive', []).map((h) => h.command && named(h.command));
    expect(labels).toContain('Archive this item');
    expect(labels).toContain('Go to Archive');
  });
  it('wants every word', () => {
    expect(score('Go to Needs you', 'needs go')).not.toBeNull();
    expect(score('Go to Needs you', 'needs agents')).toBeNull();
  });
  it('offers commands for nothing typed, and never a number', () => {
    const hits = ranked('', []);
    expect(hits.length).toBeGreaterThan(10);
    expect(hits.some((h) => h.command?.id === 'choose')).toBe(false);
  });
});

it('makes a sentence of a refusal, without its pointer', () => {
  expect(refusal('/agent_id: an agent id cannot contain "#"', [{ pointer: '/agent_id' }])).toBe('An agent id cannot contain "#".');
  expect(refusal('The hub is busy.')).toBe('The hub is busy.');
});

it('groups only the settings that there are', () => {
  const groups = grouped({ retention_days: 90, 'x.y': 1 });
  expect(groups.map((g) => g.settings.map((s) => s.key))).toEqual([['retention_days'], ['x.y']]);
});

it('offers moments that are still to come', () => {
  for (const hour of [0, 9, 17, 23]) {
    const now = new Date(2026, 10, 29, hour, 30).getTime();
    const list = snoozes(now);
    expect(list.every((s) => s.at > now)).toBe(true);
    expect(new Set(list.map((s) => s.at)).size).toBe(list.length);
  }
});

it('has words of its own for what agents say to each other', () => {
  expect(stateWord({ box: 'fleet', kind: 'notice', state: 'delivered' })).toBe('Notice, delivered');
  expect(stateWord({ box: 'fleet', kind: 'notice', state: 'bounced' })).toBe('Notice, bounced');
  expect(stateWord({ box: 'fleet', kind: 'question', state: 'open' })).toBe('Question to an agent');
  expect(trackName({ box: 'fleet', state: 'cancelled' })).toBe('Withdrawn');
  expect(trackName({ box: 'fleet', state: 'cancelled', undelivered: true })).toBe('Not delivered');
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

describe('the words of settings', () => {
  it.each([[59, ''], [60, '1 minute'], [90, '1 minute 30 seconds'], [86_400, '1 day'], [90_000, '1 day 1 hour']])('%d s → %s', (n, want) => expect(inWords(n)).toBe(want));
  it('makes a sentence of an objection', () => {
    expect(objection('must be between 1 and 3650')).toBe('Must be between 1 and 3,650.');
    expect(objection('may not be longer than the presence window (presence.freshness_seconds, 90 s)')).toBe('May not be longer than the presence window (“Counts as listening”, 90 s).');
  });
});

describe('the words of a history', () => {
  const said = (action: string, actor: string) => historyWords({ at: 0, actor, action, note: [{ t: 'N' }] }, 'human:maria');
  it('has the words of the receipt', () => {
    expect(said('delivered-to-agent', 'agent:bot')).toMatchObject({ word: 'Collected', by: 'bot' });
    expect(said('cancelled', 'agent:bot').word).toBe('Withdrawn');
    expect(said('cancelled', 'system:undeliverable')).toMatchObject({ word: 'Withdrawn', by: 'the hub, because it could not be delivered' });
    expect(said('operator allowed to answer', 'human:maria')).toEqual({ word: 'You allowed yourself to answer', by: '', note: [{ t: 'N' }] });
    expect(said('operator allowed to answer', 'human:ada').by).toBe('ada');
  });
});
