// What the person wrote to agents, and how far it got.
import { api, failWords, stale } from './api';
import { desk } from './desk.svelte';
import type { Directive } from './types';

const PAUSE_MS = 250;

export class Directives {
  list = $state.raw<Directive[]>([]);
  loaded = $state(false);
  problem = $state('');
  private running = false;
  private again = false;

  /** Follows the messages to one agent, or to all ('' ), while the calling component is on screen. */
  constructor(private readonly agent: () => string, private readonly limit = 200) {
    $effect(() => {
      void desk.rev.agents;
      void this.agent();
      void this.load();
    });
  }

  async load(): Promise<void> {
    if (this.running) { this.again = true; return; }
    this.running = true;
    do {
      this.again = false;
      const agent = this.agent();
      try {
        const { directives } = await api.directives({ agent, limit: this.limit });
        if (agent === this.agent()) {
          this.list = directives;
          this.loaded = true;
          this.problem = '';
        } else this.again = true;
      } catch (e) {
        this.problem = failWords(e, stale);
        desk.noticed(e);
      }
      if (this.again) await new Promise((r) => setTimeout(r, PAUSE_MS));
    } while (this.again);
    this.running = false;
  }
}
