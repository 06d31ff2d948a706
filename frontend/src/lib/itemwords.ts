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
  }
  if (row.state !== 'open') return states[row.state];
  if (row.box === 'waiting') return 'Waiting for somebody else';
  return row.kind === 'task' ? 'Task for you' : 'Question for you';
}

export const stateName = (s: State): string => states[s];

/** The same in a list, where a notice between agents is delivered rather than a kind. */
export const trackName = (s: State): string => (s === 'delivered' ? 'Delivered' : states[s]);
