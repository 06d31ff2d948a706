import { describe, expect, it, vi } from 'vitest';

vi.mock('../src/lib/desk.svelte', () => ({ desk: { offline: false, noticed: () => {} } }));

import { faults, objections, tagList, wire, type Written } from '../src/lib/compose.svelte';
import { arranged, awayWords, endedSessions, endWords, keptWords, mailSentence, mailTone, mailWord, matching, presenceWords, reach, sessionName, shortId, splitAddress, waitingFor } from '../src/lib/fleetwords';
import { recipients } from '../src/lib/recipients';
import { defaults, readTemplates, withTemplate } from '../src/lib/templates';
import type { FleetAgent, Presence, Session } from '../src/lib/types';

const now = new Date(2026, 10, 29, 14, 0, 0).getTime();
const M = 60_000, H = 60 * M;

function session(id: string, more: Partial<Session> = {}): Session {
  return { id, state: 'active', presence: { state: 'online', last_seen: now }, created_at: now - H, lease_end: now + 10 * M, ttl_seconds: 900, entries_waiting: 0, open_items: 0, ...more };
}
function agent(id: string, more: Partial<FleetAgent> = {}): FleetAgent {
  return {
    agent_id: id, protocol: 'ma2h', created_at: 0, open_items: 0, hosts_awaiting_approval: [], presence: { state: 'unknown' }, entries_waiting: 0, sessions: [],
    policy: { operator_resolves_unlisted: false, callback_hosts: [], allowed_senders: null, inbound_webhook: null }, ...more,
  };
}

describe('presence', () => {
  it.each<[Presence, string]>([
    [{ state: 'online', last_seen: now }, 'active just now'], [{ state: 'online', last_seen: now - 4 * M }, 'active 4 m ago'], [{ state: 'offline', last_seen: now - 5 * M }, 'last active 5 m ago'],
    [{ state: 'offline', last_seen: now - 20_000 }, 'last active just now'], [{ state: 'offline', last_seen: now - 40 * 24 * H }, 'last active on 20 Oct'],
    [{ state: 'unknown' }, 'has never listened'],
  ])('%o → %s', (p, want) => expect(presenceWords(p, now)).toBe(want));
  it('of whoever asked tells one that looks again and again from one that is away', () => {
    expect(awayWords({ state: 'online', last_seen: now - 1000 }, now)).toEqual({ here: true, words: 'active just now', more: '; gets the answer when it next looks' });
    expect(awayWords({ state: 'offline', last_seen: now - 5 * M }, now)).toEqual({ here: false, words: 'not waiting', more: '; last active 5 m ago' });
    for (const p of [{ state: 'unknown' } as Presence, undefined]) expect(awayWords(p, now)).toEqual({ here: false, words: 'not waiting', more: '; can collect the answer later' });
  });
});

describe('before sending', () => {
  it('says when it will be read', () => {
    expect(reach(agent('a', { presence: { state: 'online', last_seen: now } }), null, now)).toEqual({ tone: 'here', text: 'Active just now.' });
    expect(reach(agent('a', { presence: { state: 'offline', last_seen: now - 2 * H } }), null, now).text).toBe('Not active for 2 h: it gets this when it next listens.');
    expect(reach(agent('a'), null, now).text).toMatch(/^Has never listened: /);
  });
  it('says that a session may end first', () => {
    expect(reach(agent('a'), session('s'), now).text).toMatch(/^Active just now.*bounces/);
    expect(reach(agent('a'), session('s', { presence: { state: 'offline', last_seen: now - 3 * M } }), now).text).toMatch(/^Not active for 3 m.*10 m.*bounces/);
    expect(reach(agent('a'), session('s', { state: 'expired' }), now).tone).toBe('stopped');
  });
  it('warns about a stopped agent, and says where it listens all the same', () => {
    const stopped = { at: now - H, by: 'human:maria' };
    expect(reach(agent('a', { stopped }), null, now)).toMatchObject({ tone: 'stopped', text: expect.stringContaining('13:00') });
    expect(reach(agent('a', { stopped, presence: { state: 'online', last_seen: now } }), null, now)).toMatchObject({ tone: 'stopped', text: expect.stringMatching(/Active just now, so it may get this all the same/) });
  });
});

describe('the track of a message', () => {
  it('has a word of its own for each end', () => {
    const ends = [
      mailWord({ state: 'queued' }), mailWord({ state: 'delivered' }), mailWord({ state: 'acknowledged' }), mailWord({ state: 'expired' }),
      mailWord({ state: 'bounced', prior: 'queued' }), mailWord({ state: 'bounced', prior: 'delivered' }),
      mailWord({ state: 'bounced', prior: 'acknowledged' }),
    ];
    expect(new Set(ends).size).toBe(ends.length);
    expect(ends[3]).toBe('Expired, never delivered');
    expect(ends[4]).toBe('Bounced, never delivered');
    expect(ends[5]).toBe('Bounced: delivered, never acknowledged');
  });
  it('says that a delivered one stays delivered when it expires', () => {
    expect(mailWord({ state: 'bounced', prior: 'delivered', note: [{ t: 'pi refused it' }] })).toBe('Bounced: refused');
    expect(mailSentence({ state: 'bounced', prior: 'delivered', note: [{ t: 'pi refused it' }] }, false, now)).not.toMatch(/may have acted/);
    expect(mailSentence({ state: 'delivered', expires_at: now - 1 }, false, now)).toMatch(/has expired/);
    expect(mailSentence({ state: 'delivered', expires_at: now + 1 }, false, now)).not.toMatch(/expired/);
  });
  it('says who ended before it was collected', () => {
    expect([true, false].map((one) => mailSentence({ state: 'bounced', prior: 'queued' }, one, now))).toEqual(['The session ended before it collected this. Nobody has seen it.', 'The agent ended before it collected this. Nobody has seen it.']);
  });
  it('claims of what was sent to the agent neither that it was read nor that it was not', () => {
    for (const m of [{ state: 'bounced', prior: 'queued' }, { state: 'expired' }] as const) {
      for (const one of [true, false]) {
        const sent = { ...m, shown: true };
        expect(mailSentence(sent, one, now)).toMatch(/^It was sent to the (session|agent), which .* It may have been read/);
        expect(`${mailSentence(sent, one, now)} ${mailWord(sent)}`).not.toMatch(/nobody|never see|never delivered/i);
      }
    }
    expect(mailWord({ state: 'bounced', prior: 'queued', shown: true })).toBe('Bounced, delivery never confirmed');
    expect(mailWord({ state: 'bounced', prior: 'delivered', shown: true })).toBe('Bounced: delivered, never acknowledged');
  });
  it('says when what has no deadline ends', () => {
    const due_at = new Date(2026, 11, 29, 14, 0).getTime();
    expect(keptWords({ state: 'queued', due_at }, false, now)).toBe('without a deadline: given up 29 Dec 14:00 if it is not acknowledged');
    expect(keptWords({ state: 'delivered', due_at }, true, now)).toMatch(/given up when the session ends, at the latest 29 Dec/);
    expect(keptWords({ state: 'bounced', due_at }, true, now)).toBe('');
  });
  it('is green only when it is acknowledged', () => {
    expect((['queued', 'delivered', 'acknowledged', 'bounced', 'expired'] as const).map((state) => mailTone({ state }))).toEqual(['quiet', 'info', 'done', 'bad', 'bad']);
  });
});

it('takes addresses apart', () => {
  expect(splitAddress('agent:a/b:c')).toEqual({ agent: 'a/b:c', session: null });
  expect(splitAddress('agent:a#sess_1')).toEqual({ agent: 'a', session: 'sess_1' });
});

it('names sessions and how they ended', () => {
  expect(sessionName(session('sess_72neium2bvilcjrof63gmwe5xph6wud6'))).toEqual([{ t: 'sess_…h6wud6' }]);
  expect(sessionName(session('s', { label: [{ t: 'Nightly' }] }))).toEqual([{ t: 'Nightly' }]);
  expect(shortId('sess_1')).toBe('sess_1');
  expect([{ state: 'closed', closed_by_operator: true }, { state: 'closed' }, { state: 'expired' }].map((s) => endWords(session('s', s as Partial<Session>)))).toEqual(['closed by you', 'closed by itself', 'lease ran out']);
  const a = agent('a', { sessions: [session('x'), session('old', { state: 'closed', closed_at: 1 }), session('new', { state: 'expired', closed_at: 2 })] });
  expect(endedSessions(a).map((s) => s.id)).toEqual(['new', 'old']);
});

describe('the list of the fleet', () => {
  const all = [
    agent('zoe', { presence: { state: 'online', last_seen: now } }), agent('bob', { sessions: [session('s1', { label: [{ t: 'Nightly' }], entries_waiting: 2 })], entries_waiting: 1 }),
    agent('amy'), agent('gone', { revoked_at: 1 }),
  ];
  it('puts who is there first, by name', () => {
    const { here, away, revoked } = arranged(all, '');
    expect([here, away, revoked].map((g) => g.map((a) => a.agent_id))).toEqual([['bob', 'zoe'], ['amy'], ['gone']]);
  });
  it('finds by the name of a live session', () => expect(arranged(all, 'night bob').here.map((a) => a.agent_id)).toEqual(['bob']));
  it('keeps those that have ended apart, and offers none of them', () => {
    const ended = agent('acp/w', { protocol: 'acp', ended_at: now - M, presence: { state: 'offline', last_seen: now - M } });
    expect(arranged([...all, ended], '').ended).toEqual([ended]);
    expect([...arranged([ended], '').here, ...arranged([ended], '').away, ...recipients([ended], '')]).toEqual([]);
    expect(reach(ended, null, now)).toEqual({ tone: 'stopped', text: 'It has ended: nothing reaches it any more.' });
  });
  it('shows the sessions that match, or all where the agent does', () => {
    const many = agent('swarm', { sessions: [session('s1', { label: [{ t: 'shard 1' }] }), session('s2', { run_id: [{ t: 'r-2' }] }), session('s3', { state: 'closed' })] });
    expect(['', 'swarm', 'swarm shard', 'r-2', 'x'].map((t) => matching(many, t).map((s) => s.id))).toEqual([['s1', 's2'], ['s1', 's2'], ['s1'], ['s2'], []]);
    expect(arranged([many], 'x').here).toEqual([]);
  });
  it('counts what waits for an agent in all its live sessions', () => {
    expect(waitingFor(all[1]!)).toBe(3);
    expect(waitingFor(agent('a', { sessions: [session('s', { state: 'closed', entries_waiting: 4 })] }))).toBe(0);
  });
  it('offers agents and their live sessions as recipients', () => {
    expect(recipients(all, '').map((r) => r.key)).toEqual(['bob', 's1', 'zoe', 'amy']);
    expect(recipients(all, 'nightly').map((r) => r.key)).toEqual(['bob', 's1']);
    expect(recipients(all, 'gone')).toEqual([]);
  });
});

describe('writing', () => {
  const written: Written = { agent: 'a/b', session: null, title: ' Hold ', body: '', priority: 'normal', tags: '', expires: 'never' };
  it('wants an agent and a title', () => {
    expect(faults(written)).toEqual({});
    expect(faults({ ...written, agent: null, title: '  ' })).toEqual({ to: expect.any(String), title: expect.any(String) });
    expect(faults({ ...written, title: '🛑'.repeat(200) })).toEqual({});
    expect(faults({ ...written, title: 'x'.repeat(201) }).title).toContain('201');
  });
  it('sends only what was chosen', () => {
    expect(wire(written, now)).toEqual({ to: 'agent:a/b', title: 'Hold' });
    expect(wire({ ...written, session: 'sess_1', body: 'x', priority: 'urgent', tags: 'a, b ,,a', expires: '1h' }, now))
      .toEqual({ to: 'agent:a/b#sess_1', title: 'Hold', body: 'x', priority: 'urgent', tags: ['a', 'b'], expires_at: new Date(now + H).toISOString() });
    expect(tagList(' , ')).toEqual([]);
  });
  it('puts each objection to its field', () => {
    const no = (code: string, ...pointers: string[]) => objections({ code, message: 'no', details: pointers.map((pointer) => ({ pointer, message: `bad ${pointer}` })) }, true);
    expect(Object.keys(no('unknown_destination'))).toEqual(['to']);
    expect(no('destination_gone').to).toMatch(/ended/);
    expect(no('validation_error', '/expires_at', '/tags/0', '/context')).toEqual({ expires_at: 'bad /expires_at', tags: 'bad /tags/0', '': 'bad /context' });
    expect(no('rate_limited')).toEqual({ '': 'no' });
  });
});

describe('templates', () => {
  it('has three to begin with', () => expect(defaults.map((t) => t.name)).toEqual(['Hold all work', 'Continue', 'Report status']));
  it('reads only what makes sense', () => {
    expect(readTemplates(null)).toEqual([]);
    expect(readTemplates('{nonsense')).toEqual([]);
    expect(readTemplates('[null, {"name": "x"}, {"name": "A", "title": "A", "body": "b", "priority": "shrill"}, {"name": "A", "title": "again", "body": ""}]'))
      .toEqual([{ name: 'A', title: 'A', body: 'b', priority: 'normal', own: true }]);
  });
  it('replaces one of the same name', () => {
    const one = withTemplate([], { name: 'A', title: 'A', body: '1', priority: 'low' });
    expect(withTemplate(one, { name: 'A', title: 'A', body: '2', priority: 'low' })).toMatchObject([{ body: '2', own: true }]);
    let many = one;
    for (let i = 0; i < 30; i++) many = withTemplate(many, { name: String(i), title: 't', body: '', priority: 'normal' });
    expect(many).toHaveLength(20);
  });
});
