// The conversations of agents, and the network they are in. Loaded while somebody looks, and again when the hub says they changed.
import { shared } from './again';
import { api, failWords, Refused, stale, unsure, type Saying } from './api';
import { desk } from './desk.svelte';
import { plain } from './format';
import { Loaded } from './loaded.svelte';
import type { Conversation, Grant, Network, Thread, Turn } from './talktypes';

const PAUSE_MS = 250;
/** So many turns are shown at first, and more by each step back. */
export const TURNS = 200;
/** So many half-written things that made room for others are kept, of a conversation. */
const KEPT = 5;

/** What is written and not sent: for whom alone, with who could read what stands above it then, in answer to which turn, and where. */
export interface Words { text: string; only: string; above: string; answered: Turn | null; apart: boolean; thread: string }

/** What the person is writing in a conversation. It stays while they look elsewhere. */
export class Draft {
  text = $state('');
  only = $state('');
  above = $state('');
  answered = $state.raw<Turn | null>(null);
  apart = $state(false); // in a new thread below the turn that is answered
  thread = $state('');
  /** What had to make room for other words, the oldest first. */
  aside = $state.raw<readonly Words[]>([]);

  get words(): Words {
    const { text, only, above, answered, apart, thread } = this;
    return { text, only, above, answered, apart, thread };
  }

  putAside(): void {
    if (this.text.trim()) this.aside = [...this.aside, this.words].slice(-KEPT);
    this.text = '';
  }

  /** Words come back without taking the place of others. */
  keep(w: Words): void {
    if (this.text.trim()) this.aside = [...this.aside, w].slice(-KEPT);
    else this.bring(w);
  }

  /** Words come back, with all that was said of them. */
  bring(w: Words): void {
    this.aside = this.aside.filter((x) => x !== w);
    this.putAside();
    Object.assign(this, w);
  }
}

class Talk {
  readonly list = new Loaded<Conversation[]>(async () => (await api.conversations()).conversations, [], ['map']);
  readonly network = new Loaded<Network>(() => api.network(), { agents: [], scopes: [], edges: [] }, ['map']);
  readonly grants = new Loaded<Grant[]>(async () => (await api.grants()).grants, [], ['map']);
  /** The form of a new conversation is open. What is written in it stays when it is closed. */
  beginning = $state(false);
  plan = $state<{ subject: string; text: string; chosen: string[] }>({ subject: '', text: '', chosen: [] });
  private readonly drafts = new Map<string, Draft>();

  draft(conversation: string): Draft {
    const d = this.drafts.get(conversation) ?? new Draft();
    this.drafts.set(conversation, d);
    return d;
  }

  /** Begins a conversation; its id, or what is in the way. */
  async begin(subject: string, agents: string[], text: string): Promise<{ id: string } | { problem: string }> {
    try {
      return { id: (await api.beginTalk({ subject, with: agents, ...(text ? { text } : {}) })).id };
    } catch (e) {
      desk.noticed(e);
      return { problem: failWords(e, unsure) };
    }
  }

  /** Ends a grant; what is in the way, or nothing. */
  async revoke(id: string): Promise<string> {
    try {
      await api.revokeGrant(id);
    } catch (e) {
      if (!(e instanceof Refused && e.status === 404)) { desk.noticed(e); return failWords(e, unsure); } // it has ended by itself
    }
    await this.grants.load();
    return '';
  }
}

export const talk = new Talk();

/** One conversation: its last turns, and as many before them as the person has asked for. */
export class Open {
  it = $state.raw<Conversation | null>(null);
  problem = $state('');
  busy = $state(false);
  private turns = TURNS;
  readonly load = shared(() => this.take(api.conversation(this.id, this.turns), stale).then(() => undefined), PAUSE_MS);

  constructor(readonly id: string) {
    $effect(() => {
      void desk.rev.map;
      void this.load();
      const back = () => this.read(); // what came while nobody looked
      document.addEventListener('visibilitychange', back);
      return () => document.removeEventListener('visibilitychange', back);
    });
  }

  /** What is shown to somebody who looks is read. */
  private read(): void {
    const last = this.it?.turns.at(-1);
    if (last && this.it?.unread && document.visibilityState === 'visible') void api.readTalk(this.id, last.id).catch((e: unknown) => desk.noticed(e));
  }

  /** Waits for an answer of the hub's and shows it; true: it was done. */
  private async take(answer: Promise<Conversation>, meaning: string): Promise<boolean> {
    try {
      this.it = await answer;
      this.problem = '';
      this.read();
      return true;
    } catch (e) {
      this.problem = e instanceof Refused && e.status === 404 ? 'There is no such conversation any more.' : failWords(e, meaning);
      desk.noticed(e);
      return false;
    }
  }

  /** Shows more of what stands before the turns on show. */
  earlier(): Promise<boolean> {
    this.turns += TURNS;
    return this.take(api.conversation(this.id, this.turns), stale);
  }

  async say(what: Saying): Promise<boolean> {
    this.busy = true;
    const said = await this.take(api.say(this.id, what, this.turns), unsure);
    this.busy = false;
    return said;
  }

  act(act: 'join' | 'leave' | 'close' | 'reopen'): Promise<boolean> {
    return this.take(api.actOn(this.id, act, this.turns), unsure);
  }
}

/** A turn on show, or one that a thread on show is below. */
export const turnOf = (c: Conversation, id: string | undefined): Turn | undefined => c.turns.find((t) => t.id === id) ?? c.roots.find((t) => t.id === id);

/** What a thread is called: by its subject, or by who said what it is below. */
export function threadName(c: Conversation, th: Thread): string {
  const subject = plain(th.subject);
  if (subject) return `“${subject}”`;
  const root = turnOf(c, th.root);
  return `the thread below ${root?.mine ? 'yours' : (plain(root?.from) || 'a turn')} (${th.turns})`;
}
