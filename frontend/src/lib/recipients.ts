// Who a message can be for: each agent, and below it its live sessions.
import { arranged, matching, takesMessages } from './fleetwords';
import type { FleetAgent, Session } from './types';

export interface Recipient { key: string; agent: FleetAgent; session?: Session }
const MOST = 200;

/** Every word must occur in the agent's name or in what the session is called. Those that are there come first. */
export function recipients(agents: readonly FleetAgent[], typed: string): Recipient[] {
  const { here, away } = arranged(agents.filter(takesMessages), typed);
  return [...here, ...away].flatMap((agent): Recipient[] => [
    { key: agent.agent_id, agent }, ...matching(agent, typed).map((session) => ({ key: session.id, agent, session })),
  ]).slice(0, MOST);
}
