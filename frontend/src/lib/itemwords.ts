// One word for each thing an item can be, the same everywhere.
import type { Box, Priority, Row, State } from './types';

const states: Record<State, string> = {
  open: 'Open', answered: 'Answered', declined: 'Declined', cancelled: 'Withdrawn', expired: 'Expired',
  completed: 'Completed', dismissed: 'Dismissed', delivered: 'Notice',
  queued: 'Queued', acknowledged: 'Acknowledged', bounced: 'Bounced',
};

export const boxNames: Record<Box, string> = {
  needs: 'Needs you', waiting: 'Waiting', notices: 'Notices', done: 'Done', archive: 'Archive', fleet: 'Between agents',
};
export const priorityWords: Record<Priority, string> = { low: 'low', normal: 'normal', high: 'high', urgent: 'urgent' };

export function stateWord(row: Pick<Row, 'state' | 'box' | 'kind'>): string {
  if (row.box === 'fleet') {
    if (row.kind === 'notice') return row.state === 'delivered' ? 'Notice, delivered' : `Notice, ${states[row.state].toLowerCase()}`;
    if (row.state === 'open') return row.kind === 'task' ? 'Task for an agent' : 'Question to an agent';
    return trackName(row);
  }
  if (row.state !== 'open') return states[row.state];
  if (row.box === 'waiting') return 'Waiting for somebody else';
  return row.kind === 'task' ? 'Task for you' : 'Question for you';
}

export const stateName = (s: State): string => states[s];

/** The same where agents talk among themselves: a notice is delivered rather than a kind, and the hub too may cancel. */
export function trackName(row: Pick<Row, 'state' | 'box'>): string {
  if (row.box !== 'fleet') return states[row.state];
  return row.state === 'delivered' ? 'Delivered' : row.state === 'cancelled' ? 'Cancelled' : states[row.state];
}
