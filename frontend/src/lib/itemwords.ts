// One word for each thing an item can be, the same everywhere.
import { moment, plain, who } from './format';
import type { Box, Detail, Priority, Row, State } from './types';

const states: Record<State, string> = {
  open: 'Open', answered: 'Answered', declined: 'Declined', cancelled: 'Withdrawn', expired: 'Expired',
  completed: 'Completed', dismissed: 'Dismissed', delivered: 'Notice',
  queued: 'Queued', acknowledged: 'Acknowledged', bounced: 'Bounced',
};

const verdicts: Record<NonNullable<Row['verdict']>, string> = { allow: 'Allowed', deny: 'Denied', modify: 'Allowed with changes' };

export const boxNames: Record<Box, string> = {
  needs: 'Needs you', waiting: 'Waiting', notices: 'Notices', done: 'Done', archive: 'Archive', fleet: 'Between agents',
};
export const priorityWords: Record<Priority, string> = { low: 'low', normal: 'normal', high: 'high', urgent: 'urgent' };

/** Put off by the person until a moment that has not come. */
export const snoozedNow = (row: Pick<Row, 'state' | 'snoozed_until'>, now: number): boolean => row.state === 'open' && (row.snoozed_until ?? 0) > now;

export function stateWord(row: Pick<Row, 'state' | 'box' | 'kind' | 'snoozed_until' | 'ask' | 'verdict'>, now = Date.now()): string {
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

/** What it meant that nobody answered in time. */
export function lapsedWords(d: Pick<Detail, 'protocol' | 'kind' | 'call'>): string {
  if (d.protocol === 'pi') return 'Nobody answered in time: pi went on without you (counted as no).';
  if (d.call) return 'Nobody answered in time; the hub said no.';
  return d.kind === 'task' ? 'Nobody did it.' : 'Nobody answered, and the agent gets no answer.';
}

/** How it ended without the person, who had it open: whatever they were about to send did not go. */
export function endedWords(d: Pick<Detail, 'state' | 'box' | 'agent' | 'outcome' | 'call' | 'protocol' | 'kind'>, operator: string): string {
  if (d.call && d.state === 'cancelled') return `Withdrawn. ${d.outcome?.comment?.length ? plain(d.outcome.comment) : 'The agent is no longer waiting.'} Nothing of yours was sent.`;
  if (d.state === 'expired' && (d.call || d.protocol === 'pi')) return `Expired. ${lapsedWords(d)} Nothing of yours was sent.`;
  const by = d.state === 'expired' || d.outcome?.defaulted ? '' : d.state === 'cancelled' ? (d.outcome?.actor === 'system:agent-gone' ? ', as nobody waits for the answer any more,' : ` by ${d.agent}`)
    : d.outcome ? ` by ${who(d.outcome.actor, operator)}` : '';
  return `${d.outcome?.defaulted ? states.expired : states[d.state]}${by} while you had it open. ${d.outcome?.value === undefined ? 'Nothing was sent.' : 'Nothing of yours was sent.'}`;
}

export const stateName = (s: State): string => states[s];

/** The same of a row: a call by its verdict, and where agents talk among themselves a notice is delivered rather than a kind. */
export function trackName(row: Pick<Row, 'state' | 'box' | 'verdict'>): string {
  if (row.box !== 'fleet') return row.verdict ? verdicts[row.verdict] : states[row.state];
  return row.state === 'delivered' ? 'Delivered' : states[row.state];
}
