// The page of the first run: which question it shows, and what it says once that is answered.
import { who } from './format';
import type { CommandId } from './keys';
import { lostWords, stateName, trackName } from './itemwords';
import type { AgentView, Detail, Row } from './types';

/** The agent of the practice question (backend/practice.go). */
export const PRACTICE = 'deskbell-practice';

/** An agent that the person added: neither the one of the practice question, nor the command line's own. */
export const ofTheirs = (a: Pick<AgentView, 'agent_id' | 'revoked_at'>): boolean => a.agent_id !== PRACTICE && !a.agent_id.startsWith('cli/') && a.revoked_at === undefined;

/** The commands that mean something while the page of the first run is up: those about the one question on it. */
export const inFirstRun: ReadonlySet<CommandId> = new Set(['choose', 'allow', 'write', 'comment', 'decline', 'send', 'undo', 'back', 'help', 'quit', 'theme', 'density']);

/** The item to bring up: the first that waits, and after the end of that one only what came since, so that a key held
 *  down, or pressed twice, finds nothing else to answer. Null: leave what is there. */
export function nextToShow(rows: readonly Pick<Row, 'id' | 'state' | 'received_at'>[], shown: string | null, detail: Pick<Detail, 'id' | 'state' | 'resolved_at'> | null): string | null {
  if (shown === null) return rows.find((r) => r.state === 'open')?.id ?? null;
  if (detail?.id !== shown || detail.state === 'open') return null;
  const ended = detail.resolved_at ?? Infinity;
  return rows.find((r) => r.state === 'open' && r.id !== shown && r.received_at > ended)?.id ?? null;
}

/** Somebody answered it: it did not expire, and was not taken back. */
export const answered = (d: Pick<Detail, 'state' | 'outcome'>): boolean => d.outcome !== undefined && !d.outcome.defaulted && d.state !== 'expired' && d.state !== 'cancelled';

/** What became of the question, as far as it is known: an answer has arrived only when the agent took it. */
export function arrivedWords(d: Pick<Detail, 'state' | 'box' | 'verdict' | 'agent' | 'outcome' | 'push' | 'track' | 'call' | 'held' | 'lost' | 'on_way'>, operator: string): string {
  const word = trackName(d);
  if (d.outcome === undefined || !answered(d)) return `${stateName(d.state)}.`;
  const by = who(d.outcome.actor, operator);
  if (by !== who(operator, operator)) return `${word} by ${by}.`;
  if (d.agent === PRACTICE) return 'That is all there is to it.';
  if (d.lost) return `${word}${lostWords(d)}.`;
  const took = d.held === true && !d.on_way || d.track !== undefined && d.track.state !== 'expired' || d.push?.state === 'delivered';
  return took ? `Your answer arrived: ${d.agent} has it.` : `${word}. ${d.agent} has not collected it yet.`;
}
