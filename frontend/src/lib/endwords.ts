// What closing a session, stopping or revoking an agent leads to, said before it is done, and what was done, said after it.
import { plural } from './format';
import type { Session } from './types';

/**
 * What the end of live sessions does to what others sent to them (MA2H §14.2, §7): what is not acknowledged bounces, collected or
 * not. What is acknowledged has arrived, and waits on for whoever may still answer it.
 */
export function bounceWords(sessions: number): string {
  const [it, has] = sessions === 1 ? ['it', 'it has'] : ['one of them', 'that one has'];
  return `What was sent to ${it} alone and ${has} not acknowledged bounces, even if it was collected: open tasks among it end dismissed, open asks cancelled. ` +
    'Asks and tasks that were acknowledged stay open, and whoever sent them waits on.';
}

/** What stopping an agent does to its sessions. */
export function stopWords(live: number): string {
  if (live === 0) return 'It has no live session.';
  return `Closes its ${live === 1 ? 'live session' : `${live} live sessions`} now. ${bounceWords(live)}`;
}

/** What revoking an agent does to its sessions; '' where it has none. */
export const revokeWords = (live: number): string => (live === 0 ? '' : `Its ${plural(live, 'live session')} end${live === 1 ? 's' : ''}. ${bounceWords(live)}`);

/** What a close did: a session that had ended before was not closed by it, and its agent is stopped all the same. */
export function closedWords(s: Pick<Session, 'state' | 'closed_by_operator'>): string {
  if (s.closed_by_operator) return 'Session closed';
  return s.state === 'expired' ? 'Its lease had run out before. The agent is stopped now' : 'It had been closed before. The agent is stopped now';
}
