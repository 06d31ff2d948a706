// Agents and pairings, loaded when their page is open and again when the hub says that they changed.
import { api, Refused } from './api';
import { desk } from './desk.svelte';
import type { AgentCredentials, AgentView, Pairing } from './types';
import { ui } from './ui.svelte';

class Fleet {
  agents = $state.raw<AgentView[]>([]);
  pairings = $state.raw<Pairing[]>([]);
  loaded = $state(false);
  problem = $state('');
  /** Shown once after an agent was added or rotated; the hub keeps only hashes. */
  fresh = $state.raw<AgentCredentials | null>(null);

  async load(): Promise<void> {
    try {
      const { agents, pairings } = await api.agents();
      this.agents = agents;
      this.pairings = pairings;
      this.problem = '';
      this.loaded = true;
    } catch (e) {
      this.problem = e instanceof Refused ? e.message : 'The hub does not answer.';
      desk.noticed(e);
    }
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
      return e instanceof Refused ? e.message : 'The hub did not answer; nothing was changed.';
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
