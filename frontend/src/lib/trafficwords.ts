// Words for an open message between agents: who may decide it, and whether it is there yet.
import { splitAddress } from './fleetwords';
import type { Kind, MailboxState } from './types';

/** Whom a message is for. `session`: the name of the one it is addressed to, '' where that is not known, null for the agent itself. */
export interface Addressee { agent: string; session: string | null }

function resolver(name: string): string {
  if (!name.startsWith('agent:')) return name;
  const { agent, session } = splitAddress(name);
  return session === null ? agent : `${agent} in its session ${session}`;
}

const either = (names: string[]): string => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);

/**
 * Who may decide it, and how far it got. A list names all who may, whoever it is addressed to; without one its addressee may,
 * in any of its sessions (MA2H §9.1).
 */
export function trafficWords(kind: Kind, state: MailboxState | undefined, to: Addressee, resolvers?: string[] | null): string {
  const [does, done] = kind === 'task' ? ['do', 'done'] : ['answer', 'answered'];
  const waits = state === undefined || state === 'queued';
  if (!resolvers && to.session === null) return `Only ${to.agent} may ${does} it, and has not ${waits ? 'collected' : done} it yet.`;
  const where = to.session === null ? to.agent : to.session === '' ? 'the session that it is addressed to' : `the session “${to.session}”`;
  const far = waits ? `Not collected yet by ${where}.` : `Collected by ${where}, not ${done} yet.`;
  if (!resolvers) return `Only ${to.agent} may ${does} it, in any of its sessions. ${far}`;
  if (resolvers.length === 0) return `Nobody may ${does} it: its sender allowed nobody. ${far}`;
  return `Only ${either(resolvers.map(resolver))} may ${does} it. ${far}`;
}
