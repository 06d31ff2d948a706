// What happened to an item, in the words that its receipt has for the same thing.
import { plain, who, words } from './format';
import type { HistoryEntry, Text } from './types';

export interface HistoryWords { word: string; by: string; note?: Text }

const known: Record<string, string> = {
  cancelled: 'Withdrawn', 'delivered-to-agent': 'Reached the agent', 'redelivery asked for': 'Sending again asked for', 'decision dropped': 'Held decision dropped',
  progress: 'Progress',
};

export function historyWords(h: HistoryEntry, operator: string): HistoryWords {
  const by = who(h.actor, operator);
  if (h.action === 'operator allowed to answer' && by === 'you' && h.note?.length) {
    return { word: 'You allowed yourself to answer', by: '', note: h.note };
  }
  const said: HistoryWords = { word: known[h.action] ?? words(h.action), by };
  if (h.note?.length && plain(h.note) !== '') said.note = h.note;
  return said;
}
