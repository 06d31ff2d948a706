// Agents, their sessions, and pairings: loaded while somebody looks, and again when the hub says that they changed.
import { api, failWords, unsure } from './api';
import { desk } from './desk.svelte';
import { Loaded } from './loaded.svelte';
import type { AgentCredentials, FleetAgent, Pairing, Session } from './types';
import { ui } from './ui.svelte';

/** Presence fades without any event, so it is asked for again. */
export const PRESENCE_MS = 15_000;

/** A deliberate act that is asked about once more before it is done. */
export type Act =
  | { kind: 'close'; agent: FleetAgent; session: Session }
  | { kind: 'stop' | 'rotate' | 'revoke'; agent: FleetAgent };

class Fleet extends Loaded<{ agents: FleetAgent[]; pairings: Pairing[] }> {
  /** Shown once after an agent was added or rotated; the hub keeps only hashes. */
  fresh = $state.raw<AgentCredentials | null>(null);
  /** What the open confirmation is about. */
  act = $state.raw<Act | null>(null);

  constructor() {
    super(() => api.fleet(), { agents: [], pairings: [] }, ['agents'], PRESENCE_MS);
  }

  get agents(): FleetAgent[] { return this.it.agents; }
  get pairings(): Pairing[] { return this.it.pairings; }

  find(id: string): FleetAgent | undefined {
    return this.agents.find((a) => a.agent_id === id);
  }

  ask(act: Act): void {
    this.act = act;
    ui.overlay = 'confirm';
  }

  /** Adds an agent; answers with what the hub has against it, '' when it is there. */
  async add(id: string): Promise<string> {
    return this.attempt(async () => { this.fresh = await api.addAgent(id); });
  }

  /** Does one thing to an agent and loads the list again; a refusal is shown as words. */
  async attempt(what: () => Promise<unknown>): Promise<string> {
    try {
      await what();
    } catch (e) {
      desk.noticed(e);
      return failWords(e, unsure);
    }
    await Promise.all([this.load(), desk.refreshState()]);
    return '';
  }

  async toastAttempt(what: () => Promise<unknown>): Promise<void> {
    const problem = await this.attempt(what);
    if (problem) ui.toast(problem, 'bad');
  }
}

export const fleet = new Fleet();
