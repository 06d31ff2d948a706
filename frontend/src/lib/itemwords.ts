// One word for each thing an item can be, the same everywhere.
import type { Box, Priority, Row, State } from './types';

const states: Record<State, string> = {
  open: 'Open', answered: 'Answered', declined: 'Declined', cancelled: 'Withdrawn', expired: 'Expired',
  completed: 'Completed', dismissed: 'Dismissed', delivered: 'Notice',
};

export const boxNames: Record<Box, string> = { needs: 'Needs you', waiting: 'Waiting', notices: 'Notices', done: 'Done' };
export const priorityWords: Record<Priority, string> = { low: 'low', normal: 'normal', high: 'high', urgent: 'urgent' };

export function stateWord(row: Pick<Row, 'state' | 'box' | 'kind'>): string {
  if (row.state !== 'open') return states[row.state];
  if (row.box === 'waiting') return 'Waiting for somebody else';
  return row.kind === 'task' ? 'Task for you' : 'Question for you';
}

export const stateName = (s: State): string => states[s];
