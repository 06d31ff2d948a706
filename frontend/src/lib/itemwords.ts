// One word for each thing an item can be and each way in which it can end, calls with their verdicts, the same everywhere.
import { humanActor, moment, plain, who } from './format';
import type { CallView, Verdict } from './guardtypes';
import type { Box, Detail, Priority, Row, State } from './types';

const states: Record<State, string> = {
  open: 'Open', answered: 'Answered', declined: 'Declined', cancelled: 'Withdrawn', expired: 'Expired',
  completed: 'Completed', dismissed: 'Dismissed', delivered: 'Notice',
  queued: 'Queued', acknowledged: 'Acknowledged', bounced: 'Bounced',
};

export type Tone = 'done' | 'bad' | 'wait' | 'quiet';
/** The last two: the agent left before anybody answered, and nobody did in time. The hub said no, and no person did. */
export type Shown = Verdict | 'modify' | '' | 'withdrawn' | 'expired';
const verdicts: Record<Shown, { name: string; tone: Tone }> = {
  allow: { name: 'Allowed', tone: 'done' }, modify: { name: 'Allowed with changes', tone: 'done' }, deny: { name: 'Denied', tone: 'bad' },
  ask: { name: 'Asks you', tone: 'wait' }, '': { name: 'Waits for you', tone: 'wait' },
  withdrawn: { name: states.cancelled, tone: 'quiet' }, expired: { name: states.expired, tone: 'quiet' },
};
export const verdictName = (v: Shown): string => verdicts[v].name;
export const verdictTone = (v: Shown): Tone => verdicts[v].tone;
export const isVerdict = (v: string): v is Shown => v in verdicts;

const tones: Partial<Record<State, Tone>> = { answered: 'done', completed: 'done', bounced: 'bad' };
/** The tone of how it ended. */
export const endTone = (row: Pick<Row, 'state' | 'verdict' | 'undelivered'>): Tone => (row.undelivered ? 'bad' : row.verdict ? verdictTone(row.verdict) : (tones[row.state] ?? 'quiet'));

export const boxNames: Record<Box, string> = {
  needs: 'Needs you', waiting: 'Waiting', notices: 'Notices', done: 'Done', archive: 'Archive', fleet: 'Between agents',
};
export const priorityWords: Record<Priority, string> = { low: 'low', normal: 'normal', high: 'high', urgent: 'urgent' };

/** Put off by the person until a moment that has not come. */
export const snoozedNow = (row: Pick<Row, 'state' | 'snoozed_until'>, now: number): boolean => row.state === 'open' && (row.snoozed_until ?? 0) > now;

export function stateWord(row: Pick<Row, 'state' | 'box' | 'kind' | 'snoozed_until' | 'ask' | 'verdict' | 'undelivered'>, now = Date.now()): string {
  if (row.box === 'fleet') {
    if (row.kind === 'notice') return row.state === 'delivered' ? 'Notice, delivered' : `Notice, ${states[row.state].toLowerCase()}`;
    if (row.state === 'open') return row.kind === 'task' ? 'Task for an agent' : 'Question to an agent';
    return trackName(row);
  }
  if (row.state !== 'open') return trackName(row);
  if (row.box === 'waiting' && snoozedNow(row, now)) return `Snoozed until ${moment(row.snoozed_until ?? 0, now)}`;
  if (row.box === 'waiting') return 'Waiting for somebody else';
  if (row.ask) return `A ${row.ask === 'call' ? 'call' : 'process'} that waits for your leave`;
  return row.kind === 'task' ? 'Task for you' : 'Question for you';
}

/** It asks leave for its call: a call may also be there to show what a question is about. */
export const asksLeave = (d: { call?: Pick<CallView, 'shown'> | undefined }): boolean => d.call !== undefined && !d.call.shown;

/** What it meant that nobody answered in time, to go behind "Expired:". */
export function lapsedWords(d: Pick<Detail, 'protocol' | 'kind' | 'call'>): string {
  if (d.protocol === 'pi') return 'nobody answered in time; pi went on without you (counted as no).';
  if (asksLeave(d)) return 'nobody answered in time; the hub said no.';
  return d.kind === 'task' ? 'nobody did it.' : 'nobody answered, and the agent gets no answer.';
}

/** Why a call was withdrawn. */
export const withdrawnWords = (d: Pick<Detail, 'outcome'>): string => (d.outcome?.comment?.length ? plain(d.outcome.comment) : 'The agent is no longer waiting.');

/** The operator decided it, here or elsewhere; it may be kept back yet. */
export const decidedBy = (d: Pick<Detail, 'outcome' | 'held_decision'>, operator: string): boolean =>
  d.held_decision !== undefined || (d.outcome !== undefined && humanActor(d.outcome.actor) === humanActor(operator));

/** How it ended while the person had it open, by another hand or by their own elsewhere: whatever they were about to send did not go. */
export function endedWords(d: Pick<Detail, 'state' | 'box' | 'agent' | 'outcome' | 'held_decision' | 'call' | 'protocol' | 'kind'>, operator: string): string {
  if (d.held_decision) return 'Decided by you elsewhere while you had it open. What you were writing was not sent.';
  if (decidedBy(d, operator)) return `${states[d.state]} by you elsewhere while you had it open. What you were writing was not sent.`;
  if (d.call && d.state === 'cancelled') return `${states.cancelled}. ${withdrawnWords(d)} Nothing of yours was sent.`;
  if (d.state === 'expired' && (d.call || d.protocol === 'pi')) return `${states.expired}: ${lapsedWords(d)} Nothing of yours was sent.`;
  const by = d.state === 'expired' || d.outcome?.defaulted ? '' : d.state === 'cancelled' ? (d.outcome?.actor === 'system:agent-gone' ? ', as the agent is no longer waiting,' : ` by ${d.agent}`)
    : d.outcome ? ` by ${who(d.outcome.actor, operator)}` : '';
  return `${d.outcome?.defaulted ? states.expired : states[d.state]}${by} while you had it open. ${d.outcome?.value === undefined ? 'Nothing was sent.' : 'Nothing of yours was sent.'}`;
}

export const stateName = (s: State): string => states[s];

/** What was decided and is kept back, where only the hub's word for it is known. */
export const heldName = (d: Pick<Detail, 'held_decision'>): string => stateName((d.held_decision?.resolution ?? 'answered') as State);

/** What is said behind how it ended where the answer did not reach its agent; "" where nothing is known against it. */
export const lostWords = (row: Pick<Row, 'lost'>): string => (row.lost === 'not-delivered' ? ', not delivered' : row.lost === 'not-known' ? ', perhaps not delivered' : '');

/** The same of a row: a call by its verdict, and where agents talk among themselves a notice is delivered rather than a kind. */
export function trackName(row: Pick<Row, 'state' | 'box' | 'verdict' | 'undelivered'>): string {
  if (row.undelivered) return states[row.undelivered];
  if (row.box !== 'fleet') return row.verdict ? verdictName(row.verdict) : states[row.state];
  return row.state === 'delivered' ? 'Delivered' : states[row.state];
}
