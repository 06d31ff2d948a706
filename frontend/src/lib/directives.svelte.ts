// What the person wrote to agents, and how far it got.
import { shared } from './again';
import { api, failWords, stale } from './api';
import { desk } from './desk.svelte';
import type { Directive } from './types';

const PAUSE_MS = 250;

export class Directives {
  list = $state.raw<Directive[]>([]);
  loaded = $state(false);
  problem = $state('');

  /** Follows the messages to one agent, or to all ('' ), while the calling component is on screen. */
  constructor(private readonly agent: () => string, private readonly limit = 200) {
    $effect(() => {
      void desk.rev.agents;
      void this.agent();
      void this.load();
    });
  }

  /** Loads them; calls that come while one is under way share the one after it. */
  readonly load = shared(() => this.fetch(), PAUSE_MS);

  private async fetch(): Promise<void> {
    const agent = this.agent();
    try {
      const { directives } = await api.directives({ agent, limit: this.limit });
      if (agent !== this.agent()) return; // those of the other one are loaded next
      this.list = directives;
      this.loaded = true;
      this.problem = '';
    } catch (e) {
      this.problem = failWords(e, stale);
      desk.noticed(e);
    }
  }
}
