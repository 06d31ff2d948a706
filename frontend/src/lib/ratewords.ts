// How much an agent sends, in words.
import { count } from './format';
import type { Budget } from './types';

const HOUR = 3_600_000;

/** How far back: "hour", "day", "7 days". */
export function spanWords(ms: number): string {
  if (ms === HOUR) return 'hour';
  const days = Math.round(ms / (24 * HOUR));
  return days === 1 ? 'day' : `${count(days)} days`;
}

const kinds: Record<Budget['kind'], string> = { person: 'Messages to you', agents: 'Messages to other agents', sessions: 'New sessions' };

/** What it may still do in this minute. */
export function budgetWords(b: Budget): string {
  const left = b.left === 0 ? 'none is left now' : b.left >= b.per_minute ? 'all of them are left' : `${count(b.left)} ${b.left === 1 ? 'is' : 'are'} left now`;
  return `${kinds[b.kind]}: ${count(b.per_minute)} a minute, ${left}.`;
}
