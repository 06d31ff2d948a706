// Who a message can be for: each agent, and below it its live sessions.
import { arranged, matching, takesMessages } from './fleetwords';
import type { FleetAgent, Session } from './types';

export interface Recipient { key: string; agent: FleetAgent; session?: Session }
const MOST = 200;

/** Agents of that name that take no messages, as ACS has no way to bring them one. */
export const deaf = (agents: readonly FleetAgent[], typed: string): FleetAgent[] => {
  const { here, away } = arranged(agents.filter((a) => !takesMessages(a)), typed);
  return [...here, ...away];
};

/** Agents of that name that have ended: nothing reaches them any more. */
export const over = (agents: readonly FleetAgent[], typed: string): FleetAgent[] => arranged(agents, typed).ended;

/** Every word must occur in the agent's name or in what the session is called. Those that are there come first. */
export function recipients(agents: readonly FleetAgent[], typed: string): Recipient[] {
  const { here, away } = arranged(agents.filter((a) => takesMessages(a) && !a.ended_at), typed);
  return [...here, ...away].flatMap((agent): Recipient[] => [
    { key: agent.agent_id, agent }, ...matching(agent, typed).map((session) => ({ key: session.id, agent, session })),
  ]).slice(0, MOST);
}
