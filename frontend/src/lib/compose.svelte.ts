// The message that the person is writing to an agent. It outlives its dialog, so that nothing typed is lost.
import { api, failWords, Refused, type DirectiveBody } from './api';
import { desk } from './desk.svelte';
import { loadTemplates, storeTemplates, withTemplate, type Template } from './templates';
import type { Priority } from './types';
import { ui } from './ui.svelte';

export type Expiry = '15m' | '1h' | '1d' | '1w' | 'never';
const MINUTE = 60_000;
export const expiries: Record<Expiry, number> = { '15m': 15 * MINUTE, '1h': 60 * MINUTE, '1d': 1440 * MINUTE, '1w': 10_080 * MINUTE, never: 0 };
const MAX_TITLE = 200;

export type ComposeField = 'to' | 'title' | 'body' | 'priority' | 'tags' | 'expires_at' | '';
export type ComposeProblems = Partial<Record<ComposeField, string>>;
export interface Written { agent: string | null; session: string | null; title: string; body: string; priority: Priority; tags: string; expires: Expiry }

export const tagList = (typed: string): string[] => [...new Set(typed.split(',').map((t) => t.trim()).filter(Boolean))];

/** What can be said against it before it is sent. */
export function faults(w: Written): ComposeProblems {
  const found: ComposeProblems = {};
  const length = [...w.title.trim()].length;
  if (w.agent === null) found.to = 'Choose who it is for.';
  if (length === 0) found.title = 'Give it a title.';
  else if (length > MAX_TITLE) found.title = `At most ${MAX_TITLE} characters; these are ${length}.`;
  return found;
}

export function wire(w: Written, now: number): DirectiveBody {
  const body: DirectiveBody = { to: `agent:${w.agent ?? ''}${w.session === null ? '' : `#${w.session}`}`, title: w.title.trim() };
  if (w.body.trim() !== '') body.body = w.body;
  if (w.priority !== 'normal') body.priority = w.priority;
  const tags = tagList(w.tags);
  if (tags.length) body.tags = tags;
  if (w.expires !== 'never') body.expires_at = new Date(now + expiries[w.expires]).toISOString();
  return body;
}

/** The field that each of the hub's objections belongs to. */
export function objections(e: Pick<Refused, 'code' | 'message' | 'details'>, session: boolean): ComposeProblems {
  if (e.code === 'unknown_destination') return { to: 'There is no such agent or session any more. Choose again.' };
  if (e.code === 'destination_gone') return { to: session ? 'That session has ended. Choose another, or the agent itself.' : 'That agent has ended: nothing reaches it any more.' };
  const known: readonly string[] = ['to', 'title', 'body', 'priority', 'tags', 'expires_at'];
  const found: ComposeProblems = {};
  for (const d of e.details) {
    const name = d.pointer.split('/')[1] ?? '';
    found[known.includes(name) ? (name as ComposeField) : ''] ??= d.message;
  }
  return Object.keys(found).length ? found : { '': e.message };
}

class Compose {
  agent = $state<string | null>(null);
  session = $state<string | null>(null);
  title = $state('');
  body = $state('');
  priority = $state<Priority>('normal');
  tags = $state('');
  expires = $state<Expiry>('never');
  problems = $state<ComposeProblems>({});
  busy = $state(false);
  /** The message that was just sent: its track is shown instead of the form. */
  sent = $state<string | null>(null);
  own = $state.raw<Template[]>(loadTemplates());
  /** What a template replaced, to be put back. */
  before = $state.raw<{ title: string; body: string; priority: Priority } | null>(null);

  open(agent?: string, session?: string): void {
    if (agent !== undefined) {
      this.agent = agent;
      this.session = session ?? null;
    } else if (this.title.trim() === '' && this.body.trim() === '') {
      this.agent = this.session = null; // nothing was begun: it may be for anybody
    }
    this.sent = null;
    this.problems = {};
    ui.overlay = 'compose';
  }

  /** Writes one again that did not arrive; to the agent itself where `session` is null. What was begun meanwhile can be put back. */
  again(w: { title: string; body?: string; priority?: Priority; tags?: string[] }, agent: string, session: string | null): void {
    this.use({ name: '', title: w.title, body: w.body ?? '', priority: w.priority ?? 'normal' });
    this.tags = w.tags?.join(', ') ?? '';
    this.open(agent, session ?? undefined);
  }

  to(agent: string | null, session: string | null): void {
    this.agent = agent;
    this.session = session;
    this.mended('to');
  }

  mended(field: ComposeField): void {
    if (this.problems[field]) this.problems = { ...this.problems, [field]: undefined };
  }

  use(t: Template): void {
    const { title, body, priority } = this;
    this.before = (title.trim() !== '' || body.trim() !== '') && (title !== t.title || body !== t.body) ? { title, body, priority } : null;
    this.title = t.title;
    this.body = t.body;
    this.priority = t.priority;
    this.problems = {};
  }

  putBack(): void {
    if (this.before) Object.assign(this, this.before);
    this.before = null;
  }

  save(): void {
    const name = this.title.trim();
    this.own = withTemplate(this.own, { name, title: name, body: this.body, priority: this.priority });
    storeTemplates(this.own);
    ui.say(`Kept as a template: ${name}`);
  }

  forget(name: string): void {
    this.own = this.own.filter((t) => t.name !== name);
    storeTemplates(this.own);
  }

  async send(): Promise<boolean> {
    if (this.busy || desk.offline) return false;
    this.problems = faults(this);
    if (Object.keys(this.problems).length > 0) return false;
    this.busy = true;
    try {
      this.sent = (await api.direct(wire(this, Date.now()))).id;
      this.clear();
      ui.say('Sent');
      return true;
    } catch (e) {
      this.problems = e instanceof Refused ? objections(e, this.session !== null) : { '': failWords(e, 'Whether this was sent is not known: look under Sent before you send it again.') };
      desk.noticed(e);
      return false;
    } finally {
      this.busy = false;
    }
  }

  private clear(): void {
    this.title = this.body = this.tags = '';
    this.priority = 'normal';
    this.expires = 'never';
    this.before = null;
  }
}

export const compose = new Compose();
