// What the page shows of the hub's: loaded while somebody looks, and again when the hub says that it changed.
import { shared } from './again';
import { failWords, stale } from './api';
import { desk, type Topic } from './desk.svelte';

const PAUSE_MS = 250;

/**
 * Something that is asked for whole. However many parts of the page follow it, it is loaded once for a change.
 * `every`: it changes without any event too, and is asked for again that often.
 */
export class Loaded<T> {
  it = $state.raw() as T;
  loaded = $state(false);
  /** Why it could not be loaded; '' once it was. */
  problem = $state('');
  private followers = 0;
  private stop = (): void => {};

  constructor(private readonly source: () => Promise<T>, nothing: T, private readonly topics: readonly Topic[], private readonly every = 0) {
    this.it = nothing;
  }

  /** Loads it; calls that come while one is under way share the one after it. */
  readonly load = shared(() => this.fetch(), PAUSE_MS);

  private async fetch(): Promise<void> {
    try {
      this.it = await this.source();
      this.problem = '';
      this.loaded = true;
    } catch (e) {
      this.problem = failWords(e, stale);
      desk.noticed(e);
    }
  }

  /** Keeps it current while the calling component is on screen. Call while it is being set up. */
  follow(): void {
    $effect(() => {
      if (this.followers++ === 0) this.stop = $effect.root(() => this.keep());
      return () => { if (--this.followers === 0) this.stop(); };
    });
  }

  private keep(): void {
    $effect(() => {
      for (const topic of this.topics) void desk.rev[topic];
      void this.load();
    });
    $effect(() => {
      if (this.every === 0) return;
      const timer = setInterval(() => { if (document.visibilityState === 'visible') void this.load(); }, this.every);
      return () => clearInterval(timer);
    });
  }
}
