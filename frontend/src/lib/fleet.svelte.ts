// Agents, their sessions, and pairings: loaded while somebody looks, and again when the hub says that they changed.
import { shared } from './again';
import { api, failWords, stale, unsure } from './api';
import { desk } from './desk.svelte';
import type { AgentCredentials, FleetAgent, Pairing, Session } from './types';
import { ui } from './ui.svelte';

/** Presence fades without any event, so it is asked for again. */
const PRESENCE_MS = 15_000;
const PAUSE_MS = 250;

/** A deliberate act that is asked about once more before it is done. */
export type Act =
  | { kind: 'close'; agent: FleetAgent; session: Session }
  | { kind: 'stop' | 'rotate' | 'revoke'; agent: FleetAgent };

class Fleet {
  agents = $state.raw<FleetAgent[]>([]);
  pairings = $state.raw<Pairing[]>([]);
  loaded = $state(false);
  problem = $state('');
  /** Shown once after an agent was added or rotated; the hub keeps only hashes. */
  fresh = $state.raw<AgentCredentials | null>(null);
  /** What the open confirmation is about. */
  act = $state.raw<Act | null>(null);

  find(id: string): FleetAgent | undefined {
    return this.agents.find((a) => a.agent_id === id);
  }

  /** Loads everything; calls that come while one is under way share the one after it. */
  readonly load = shared(() => this.fetch(), PAUSE_MS);

  private async fetch(): Promise<void> {
    try {
      const { agents, pairings } = await api.fleet();
      this.agents = agents;
      this.pairings = pairings;
      this.problem = '';
      this.loaded = true;
    } catch (e) {
      this.problem = failWords(e, stale);
      desk.noticed(e);
    }
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

/** Keeps the fleet current while the calling component is on screen. Call while it is being set up. */
export function followFleet(): void {
  $effect(() => {
    void desk.rev.agents;
    void fleet.load();
  });
  $effect(() => {
    const timer = setInterval(() => { if (document.visibilityState === 'visible') void fleet.load(); }, PRESENCE_MS);
    return () => clearInterval(timer);
  });
}
