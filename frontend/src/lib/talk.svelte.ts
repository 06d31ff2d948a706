// The conversations of agents, and the network they are in. Loaded while somebody looks, and again when the hub says they changed.
import { shared } from './again';
import { api, Refused } from './api';
import { desk } from './desk.svelte';
import type { Conversation, Network } from './talktypes';

const PAUSE_MS = 250;
const SEEN = 'deskbell.conversations.seen';

const words = (e: unknown): string => (e instanceof Refused ? e.message : 'The hub does not answer. What is shown may be old.');

function seenBefore(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(SEEN) ?? '{}') as Record<string, number>;
  } catch {
    return {};
  }
}

class Talk {
  list = $state.raw<Conversation[]>([]);
  network = $state.raw<Network>({ agents: [], scopes: [], edges: [] });
  loaded = $state(false);
  problem = $state('');
  /** Until when each conversation was read, in this browser. */
  seen = $state.raw<Record<string, number>>(seenBefore());

  readonly load = shared(() => this.fetch(), PAUSE_MS);

  private async fetch(): Promise<void> {
    try {
      const [talks, network] = await Promise.all([api.conversations(), api.network()]);
      this.list = talks.conversations;
      this.network = network;
      this.problem = '';
      this.loaded = true;
    } catch (e) {
      this.problem = words(e);
      desk.noticed(e);
    }
  }

  unread(c: Conversation): boolean {
    const last = c.turns.at(-1);
    return last !== undefined && !last.mine && last.at > (this.seen[c.id] ?? 0);
  }

  read(c: Conversation): void {
    const at = c.turns.at(-1)?.at ?? 0;
    if (at <= (this.seen[c.id] ?? 0)) return;
    this.seen = { ...this.seen, [c.id]: at };
    localStorage.setItem(SEEN, JSON.stringify(this.seen));
  }
}

export const talk = new Talk();

/** Keeps conversations and the network current while the calling component is on screen. Call while it is being set up. */
export function followTalk(): void {
  $effect(() => {
    void desk.mapRev;
    void talk.load();
  });
}

/** One conversation, whole. */
export class Open {
  it = $state.raw<Conversation | null>(null);
  problem = $state('');
  busy = $state(false);
  readonly load = shared(() => this.take(api.conversation(this.id)).then(() => undefined), PAUSE_MS);

  constructor(readonly id: string) {
    $effect(() => {
      void desk.mapRev;
      void this.load();
    });
  }

  /** Waits for an answer of the hub's and shows it; true: it was done. */
  private async take(answer: Promise<Conversation>): Promise<boolean> {
    try {
      this.it = await answer;
      this.problem = '';
      talk.read(this.it);
      return true;
    } catch (e) {
      this.problem = e instanceof Refused && e.status === 404 ? 'There is no such conversation any more.' : words(e);
      desk.noticed(e);
      return false;
    }
  }

  async say(text: string, only: string[]): Promise<boolean> {
    this.busy = true;
    const said = await this.take(api.say(this.id, { text, ...(only.length ? { only } : {}) }));
    this.busy = false;
    return said;
  }

  act(act: 'join' | 'leave' | 'close' | 'reopen'): Promise<boolean> {
    return this.take(api.actOn(this.id, act));
  }
}
