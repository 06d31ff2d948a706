// What happened to an item, in the words that its receipt has for the same thing.
import { plain, who, words } from './format';
import type { HistoryEntry, Text } from './types';

export interface HistoryWords { word: string; by: string; note?: Text }

const known: Record<string, string> = {
  cancelled: 'Withdrawn', 'delivered-to-agent': 'Reached the agent', 'redelivery asked for': 'Sending again asked for', 'decision dropped': 'Held decision dropped',
  progress: 'Progress',
};

/** `between`: it is a message between agents, of which its sender hears what became of it. */
export function historyWords(h: HistoryEntry, operator: string, between = false): HistoryWords {
  const by = who(h.actor, operator);
  if (h.actor === 'system:undeliverable') return { word: 'Ended, as it reaches nobody any more', by: '' };
  if (h.action === 'operator allowed to answer' && by === 'you' && h.note?.length) {
    return { word: 'You allowed yourself to answer', by: '', note: h.note };
  }
  const said: HistoryWords = { word: between && h.action === 'delivered-to-agent' ? 'Its sender knows' : (known[h.action] ?? words(h.action)), by };
  if (h.note?.length && plain(h.note) !== '') said.note = h.note;
  return said;
}
