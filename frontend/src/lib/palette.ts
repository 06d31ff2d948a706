// What the palette offers for what is typed: commands first, then items of the list. Every word must occur.
import { plain } from './format';
import { commands, type Command } from './keys';
import type { Row } from './types';

export interface Hit { id: string; command?: Command; row?: Row }

/** Lower is better; null is no match. A word at the start of a word beats one inside. */
export function score(text: string, typed: string): number | null {
  const hay = text.toLowerCase();
  let sum = 0;
  for (const word of typed.toLowerCase().split(/\s+/).filter(Boolean)) {
    const at = hay.indexOf(word);
    if (at < 0) return null;
    sum += at === 0 ? 0 : /\s/.test(hay[at - 1] ?? '') ? 1 : 3;
  }
  return sum;
}

/** What a command is called where its group is not beside it. */
export const named = (c: Command): string => (c.group === 'Go to' ? `Go to ${c.label}` : c.label);

/** `found` are the hub's own finds for the same words, and come after what is loaded. Commands that cannot act now are left out. */
export function ranked(typed: string, rows: readonly Row[], found: readonly Row[] = [], can: (c: Command) => boolean = () => true): Hit[] {
  const hits: { hit: Hit; score: number }[] = [];
  for (const c of commands) {
    if (c.noPalette || c.id === 'back' || c.id === 'open' || !can(c)) continue;
    const s = score(c.group === 'Go to' ? named(c) : `${c.label} ${c.group}`, typed);
    if (s !== null) hits.push({ hit: { id: `c:${c.id}`, command: c }, score: s });
  }
  if (typed.trim() !== '') {
    for (const row of rows) {
      const s = score(`${plain(row.title)} ${row.agent}`, typed);
      if (s !== null) hits.push({ hit: { id: row.id, row }, score: s + 10 });
    }
    hits.sort((a, b) => a.score - b.score);
    const known = new Set(hits.map((h) => h.hit.id));
    for (const row of found) if (!known.has(row.id)) hits.push({ hit: { id: row.id, row }, score: Infinity });
  }
  return hits.slice(0, 40).map((h) => h.hit);
}
