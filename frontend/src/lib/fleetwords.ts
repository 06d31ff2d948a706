// Words for agents, their sessions and what is sent to them. Pure: the clock comes in as an argument.
import { age, ago, atMoment, count, left, moment, plain, plural } from './format';
import type { FleetAgent, MailboxState, Presence, Session, Text } from './types';

/** A peer proves itself in a protocol of its own: this hub gave it no credential, and its policy of posts is not this hub's. */
export const isPeer = (a: Pick<FleetAgent, 'protocol'>): boolean => a.protocol !== 'ma2h';
/** Whether a message can be brought to it that it did not ask for: ACS has no way. */
export const takesMessages = (a: Pick<FleetAgent, 'protocol'>): boolean => a.protocol !== 'acs';

/** What its protocol is called. */
export const protocolNames: Record<string, string> = { ma2h: 'MA2H', acs: 'ACS', map: 'MAP', pi: 'pi’s RPC', acp: 'ACP' };

export const isLive = (s: Session): boolean => s.state === 'active';
export const liveSessions = (a: FleetAgent): Session[] => a.sessions.filter(isLive);
export const endedSessions = (a: FleetAgent): Session[] => a.sessions.filter((s) => !isLive(s)).sort((x, y) => (y.closed_at ?? 0) - (x.closed_at ?? 0));

/** What a session waits for: the answers to what it asked. */
export const waitsFor = (n: number): string => `waits for ${plural(n, 'answer')}`;

/** All that waits for an agent: for itself, and for each of its live sessions. */
export const waitingFor = (a: FleetAgent): number => liveSessions(a).reduce((n, s) => n + s.entries_waiting, a.entries_waiting);

/** The same in words, with how much of it is for which. */
export function waitingWords(a: FleetAgent): string {
  const all = waitingFor(a);
  const said = `${plural(all, 'message waits', 'messages wait')} for it`;
  const sessions = liveSessions(a).filter((s) => s.entries_waiting > 0);
  if (sessions.length === 0) return said;
  const parts = sessions.length <= 2 ? sessions.map((s) => `${count(s.entries_waiting)} for “${plain(sessionName(s))}” alone`) : [`${count(all - a.entries_waiting)} for single sessions`];
  return `${said}: ${[...(a.entries_waiting > 0 ? [`${count(a.entries_waiting)} for any session`] : []), ...parts].join(', ')}`;
}

/** An agent is active when it collects, and in all it does in a session; of one that only posts no more is known than that it never listened. */
export function presenceWords(p: Presence, now: number): string {
  if (p.state === 'unknown' || !p.last_seen) return 'has never listened';
  if (p.state !== 'online') return `last active ${ago(p.last_seen, now)}`;
  return `active ${ago(p.last_seen, now)}`;
}

/** Of whoever asked something and holds no request open for the answer: whether it will see that soon. */
export function awayWords(p: Presence | undefined, now: number): { here: boolean; words: string; more: string } {
  if (p?.state === 'online') return { here: true, words: `active ${ago(p.last_seen ?? now, now)}`, more: '; gets the answer when it next looks' };
  if (p?.state === 'offline' && p.last_seen) return { here: false, words: 'not waiting', more: `; last active ${ago(p.last_seen, now)}` };
  return { here: false, words: 'not waiting', more: '; can collect the answer later' };
}

/** A guarded agent listens to nothing: it asks for leave, and waits while it does. */
export const asksNow = (a: Pick<FleetAgent, 'protocol' | 'open_items'>): boolean => !takesMessages(a) && a.open_items > 0;

/** The presence of an agent: of a guarded one by what it was heard of, and while a call of it is open it is there. */
export function agentPresence(a: Pick<FleetAgent, 'protocol' | 'open_items' | 'presence'>, now: number): { state: Presence['state']; words: string } {
  const { state, last_seen } = a.presence;
  if (takesMessages(a)) return { state, words: presenceWords(a.presence, now) };
  if (asksNow(a)) return { state: 'online', words: 'asks for leave' };
  if (!last_seen) return { state, words: 'has never asked' };
  return { state, words: `${state === 'online' ? 'heard of' : 'last heard of'} ${ago(last_seen, now)}` };
}

export function endWords(s: Session): string {
  if (s.state === 'expired') return 'lease ran out';
  return s.closed_by_operator ? 'closed by you' : 'closed by itself';
}

const labelled = (s: Pick<Session, 'label'>): boolean => (s.label ?? []).some((x) => x.m || x.t.trim() !== '');
/** What a session is called: its label, or the end of its id. */
export const sessionName = (s: Pick<Session, 'id' | 'label'>): Text => (labelled(s) ? (s.label ?? []) : [{ t: shortId(s.id) }]);
/** What tells a session from others of its name; "" where its name does. */
export const sessionMark = (s: Pick<Session, 'id' | 'label'>): string => (labelled(s) ? shortId(s.id) : '');
export const shortId = (id: string): string => (id.length > 14 ? `${id.slice(0, 5)}…${id.slice(-6)}` : id);

export function splitAddress(to: string): { agent: string; session: string | null } {
  const bare = to.startsWith('agent:') ? to.slice('agent:'.length) : to;
  const at = bare.indexOf('#');
  return at < 0 ? { agent: bare, session: null } : { agent: bare.slice(0, at), session: bare.slice(at + 1) };
}

export type Tone = 'here' | 'away' | 'stopped';

/** Before sending: whether anybody was there to get it, as far as the hub knows. Nothing here promises that it is read. */
export function reach(a: FleetAgent, s: Session | null, now: number): { tone: Tone; text: string } {
  if (s) {
    if (!isLive(s)) return { tone: 'stopped', text: 'This session has ended: it gets nothing more.' };
    const bounces = 'If the session ends first, the message bounces.';
    if (s.presence.state === 'online') return { tone: 'here', text: `${active(s.presence, now)}. ${bounces}` };
    return { tone: 'away', text: `${silent(s.presence, now)}: this session gets it if it listens before its lease ends, in ${left(s.lease_end, now)}. ${bounces}` };
  }
  if (a.ended_at) return { tone: 'stopped', text: 'It has ended: nothing reaches it any more.' };
  if (a.stopped) {
    const until = a.protocol === 'acp' ? 'nothing of it runs' : 'it can open no session';
    if (a.presence.state === 'online') return { tone: 'stopped', text: `Stopped ${atMoment(a.stopped.at, now)}: ${until} until you resume it. ${active(a.presence, now)}, so it may get this all the same.` };
    return { tone: 'stopped', text: `Stopped ${atMoment(a.stopped.at, now)}: ${until} until you resume it, and it may not get this before.` };
  }
  switch (a.presence.state) {
    case 'online': return { tone: 'here', text: `${active(a.presence, now)}.` };
    case 'offline': return { tone: 'away', text: `${silent(a.presence, now)}: it gets this when it next listens.` };
    default: return { tone: 'away', text: 'Has never listened: it gets this if it ever listens.' };
  }
}

const active = (p: Presence, now: number): string => `Active ${ago(p.last_seen ?? now, now)}`;

function silent(p: Presence, now: number): string {
  if (!p.last_seen) return 'Has never listened';
  const a = age(p.last_seen, now);
  if (a === 'just now') return 'Not active any more';
  return `Not active ${/\d (m|h|d)$/.test(a) ? 'for' : 'since'} ${a}`;
}

/** `shown`: it was sent to the agent, by a stream or a webhook, which proves nothing either way. */
export interface Mail { state: MailboxState; prior?: 'queued' | 'delivered' | 'acknowledged'; shown?: boolean; expires_at?: number; note?: unknown }
export type MailTone = 'quiet' | 'info' | 'done' | 'bad';

export const mailTone = (m: Mail): MailTone => (m.state === 'acknowledged' ? 'done' : m.state === 'bounced' || m.state === 'expired' ? 'bad' : m.state === 'delivered' ? 'info' : 'quiet');

/** The state in the fewest words that cannot be taken for another one. */
export function mailWord(m: Mail): string {
  switch (m.state) {
    case 'queued': return 'Queued, not delivered yet';
    case 'delivered': return 'Delivered, not acknowledged';
    case 'acknowledged': return 'Acknowledged';
    case 'expired': return m.shown ? 'Expired, delivery never confirmed' : 'Expired, never delivered';
    case 'bounced':
      if (m.note) return 'Bounced: refused';
      if (m.prior === 'acknowledged') return 'Bounced: acknowledged, then its agent ended';
      if (m.prior !== 'delivered') return m.shown ? 'Bounced, delivery never confirmed' : 'Bounced, never delivered';
      return 'Bounced: delivered, never acknowledged';
  }
}

/** The same as a sentence that says what it means. */
export function mailSentence(m: Mail, session: boolean, now: number): string {
  switch (m.state) {
    case 'queued': return session ? 'It waits for that one session to collect it.' : 'It waits for the agent to collect it.';
    case 'delivered':
      if (m.expires_at && m.expires_at <= now) return 'It reached the agent, which never acknowledged it. It has expired and is not shown to the agent again.';
      return 'It reached the agent, which has not said that it took it in.';
    case 'acknowledged': return 'The agent has confirmed that it took it in.';
    case 'expired':
      if (m.shown) return 'It was sent to the agent, which did not confirm it in time. It may have been read; it is not sent again.';
      return 'The agent did not collect it in time, and will never see it.';
    case 'bounced':
      if (m.note) return 'It was refused, and not taken.';
      if (m.prior === 'acknowledged') return 'The agent took it in, and ended before it was done with it.';
      if (m.prior !== 'delivered' && m.shown) return `It was sent to the ${session ? 'session' : 'agent'}, which ended without confirming it. It may have been read.`;
      if (m.prior !== 'delivered') return `The ${session ? 'session' : 'agent'} ended before it collected this. Nobody has seen it.`;
      return `It reached the ${session ? 'session' : 'agent'}, which never acknowledged it${session ? ' before it ended or its time was over' : '; the hub has given up'}. It may have acted on it or not.`;
  }
}

/** Of what has no deadline of its own, until when the hub waits for the agent's word; '' once it has ended. */
export function keptWords(m: { state: MailboxState; due_at: number }, session: boolean, now: number): string {
  if (m.state !== 'queued' && m.state !== 'delivered') return '';
  return `without a deadline: given up ${session ? 'when the session ends, at the latest ' : ''}${moment(m.due_at, now)} if it is not acknowledged`;
}

export interface Arranged { here: FleetAgent[]; away: FleetAgent[]; ended: FleetAgent[]; revoked: FleetAgent[] }

const typedWords = (typed: string): string[] => typed.toLowerCase().split(/\s+/).filter(Boolean);
const holds = (words: string[], text: string): boolean => words.every((w) => text.toLowerCase().includes(w));

/** The live sessions of an agent that match: all of them where its name alone does. */
export function matching(a: FleetAgent, typed: string): Session[] {
  const words = typedWords(typed);
  if (holds(words, a.agent_id)) return liveSessions(a);
  return liveSessions(a).filter((s) => holds(words, [a.agent_id, plain(s.label), plain(s.kind), plain(s.project), plain(s.run_id), s.id].join(' ')));
}

/** The agents that match, or have a session that does, by name, so that none moves when another is heard of: first those that are there. */
export function arranged(agents: readonly FleetAgent[], typed: string): Arranged {
  const words = typedWords(typed);
  const found = agents.filter((a) => holds(words, a.agent_id) || matching(a, typed).length > 0)
    .sort((a, b) => a.agent_id.localeCompare(b.agent_id));
  const present = (a: FleetAgent) => asksNow(a) || a.presence.state === 'online' || liveSessions(a).length > 0;
  const alive = found.filter((a) => !a.revoked_at && !a.ended_at);
  return { here: alive.filter(present), away: alive.filter((a) => !present(a)), ended: found.filter((a) => a.ended_at && !a.revoked_at), revoked: found.filter((a) => a.revoked_at) };
}
