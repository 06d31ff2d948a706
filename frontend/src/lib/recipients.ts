// Who a message can be for: each agent, and below it its live sessions.
import { liveSessions } from './fleetwords';
import { plain } from './format';
import type { FleetAgent, Session } from './types';

export interface Recipient { key: string; agent: FleetAgent; session?: Session }
const MOST = 200;

/** Every word must occur in the agent's name or in what the session is called. */
export function recipients(agents: readonly FleetAgent[], typed: string): Recipient[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (text: string) => words.every((w) => text.toLowerCase().includes(w));
  const found: Recipient[] = [];
  for (const agent of agents.filter((a) => !a.revoked_at).sort((a, b) => a.agent_id.localeCompare(b.agent_id))) {
    const sessions = liveSessions(agent).filter((s) => fits(`${agent.agent_id} ${plain(s.label)} ${plain(s.kind)} ${plain(s.project)} ${s.run_id ?? ''} ${s.id}`));
    if (fits(agent.agent_id) || sessions.length) found.push({ key: agent.agent_id, agent });
    for (const session of sessions) found.push({ key: session.id, agent, session });
    if (found.length >= MOST) break;
  }
  return found.slice(0, MOST);
}
