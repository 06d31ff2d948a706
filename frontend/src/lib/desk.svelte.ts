// The link to the hub: signed in or not, live or not, and what to fetch when something changed.
import { once } from './again';
import { api, listen, listenOpen, Refused, setBadge, tellWindow, type Changed, type Look } from './api';
import { plain, plural, windowTitle } from './format';
import { inbox } from './inbox.svelte';
import { reader } from './reader.svelte';
import type { DeskState } from './types';
import { isBox, ui } from './ui.svelte';

export type Phase = 'starting' | 'signin' | 'ready';
export type Link = 'live' | 'connecting' | 'offline';
/** What the hub says has changed, beside items. */
export type Topic = 'agents' | 'settings' | 'rules' | 'guardian' | 'pi' | 'map';

/** The hub has gathered what it tells; here only a storm is slowed down. */
const COALESCE_MS = 60;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15_000];

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

class Desk {
  phase = $state<Phase>('starting');
  link = $state<Link>('connecting');
  state = $state.raw<DeskState | null>(null);
  retryAt = $state(0);
  /** The link that was followed signed nobody in. */
  spent = $state(false);
  /** Each grows when its topic changed: what shows it loads again. */
  readonly rev = $state<Record<Topic, number>>({ agents: 0, settings: 0, rules: 0, guardian: 0, pi: 0, map: 0 });

  /** Told which items changed, or that any may have, and how to get them. */
  onItems: (ids: readonly string[], whole: boolean, look: Look) => void = () => {};

  private close: (() => void) | null = null;
  private tries = 0;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private flushTimer: ReturnType<typeof setTimeout> | undefined;
  private flushedAt = 0;
  private readonly told = new Set<string>();
  /** The answer of which the last such toast says that it did not arrive. */
  private unreached: { id: string; toast: number } | null = null;
  /** How many failed answers the person knows of. */
  private failedKnown: number | undefined;
  private pending = { items: new Set<string>(), topics: new Set<string>(), whole: false };

  private get topics(): Topic[] {
    return Object.keys(this.rev) as Topic[];
  }

  get offline(): boolean {
    return this.link === 'offline';
  }

  async start(): Promise<void> {
    tellWindow();
    inbox.onProblem = (e) => { if (e instanceof Refused && e.status === 401) this.noticed(e); };
    listenOpen((id) => void this.openItem(id));
    if (!await this.takeTicket()) await this.connect();
  }

  /** Signs in by the ticket in the address, which leaves it at once; false where there is none. */
  async takeTicket(): Promise<boolean> {
    const ticket = /^#ticket=(.+)$/.exec(location.hash)?.[1];
    if (!ticket) return false;
    history.replaceState(null, '', location.pathname);
    this.spent = !await api.session({ ticket: unescaped(ticket) }).then(() => true, () => false);
    await this.connect();
    return true;
  }

  /** Goes to one item, wherever it is. */
  async openItem(id: string): Promise<void> {
    ui.firstRun = false;
    ui.overlay = null;
    if (!isBox(ui.view)) ui.view = inbox.box;
    ui.pane = 'item';
    reader.open(id);
    const box = (await api.item(id).catch(() => null))?.box;
    if (box === undefined || inbox.selectedId !== id || (box === ui.view && !inbox.searching && inbox.agent === null)) return;
    ui.view = box;
    await inbox.show({ box, q: '', scope: box === 'fleet' ? 'fleet' : 'all', agent: null });
  }

  async connect(): Promise<void> {
    clearTimeout(this.retryTimer);
    this.retryAt = 0;
    this.close?.();
    this.close = null;
    try {
      this.accept(await api.state());
      this.failedKnown ??= this.state?.counts.failed ?? 0;
    } catch (e) {
      if (e instanceof Refused && e.status === 401) {
        this.phase = 'signin';
        return;
      }
      this.later('offline');
      return;
    }
    this.phase = 'ready';
    if (this.link === 'offline') this.link = 'connecting';
    let opened = false;
    this.close = listen((c) => this.changed(c), () => {
      opened = true;
      this.tries = 0;
      this.link = 'live';
      void this.resync();
    }, () => {
      this.close = null;
      if (opened) return void this.connect();
      this.later('connecting'); // the hub answers but its event stream does not: look again now and then
      void this.resync();
    });
  }

  /** Tries again later, and says how it is meanwhile. What is on screen stays. */
  private later(link: Link): void {
    this.link = link;
    const wait = BACKOFF_MS[Math.min(this.tries++, BACKOFF_MS.length - 1)] ?? 15_000;
    this.retryAt = Date.now() + wait;
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => void this.connect(), wait);
  }

  /** A call found the hub away, or this browser signed out. */
  noticed(e: unknown): void {
    if (e instanceof Refused && e.status === 401) void this.connect();
    else if (!(e instanceof Refused) && this.link !== 'offline') void this.connect();
  }

  private async resync(): Promise<void> {
    for (const topic of this.topics) this.rev[topic]++;
    const look = once((id: string) => api.item(id));
    this.onItems([], true, look);
    this.takeBack([], true, look);
    if (isBox(ui.view)) await inbox.reload();
    if (inbox.selectedId !== null) await reader.load(inbox.selectedId);
  }

  private changed(c: Changed): void {
    if (c.items && c.items.length > 0) for (const id of c.items) this.pending.items.add(id);
    for (const t of c.topics ?? ['items']) this.pending.topics.add(t);
    if (!c.items?.length && (c.topics === undefined || c.topics.includes('items'))) this.pending.whole = true;
    this.flushTimer ??= setTimeout(() => void this.flush(), Math.max(0, this.flushedAt + COALESCE_MS - Date.now()));
  }

  private async flush(): Promise<void> {
    this.flushTimer = undefined;
    this.flushedAt = Date.now();
    const { items, topics, whole } = this.pending;
    this.pending = { items: new Set(), topics: new Set(), whole: false };
    for (const topic of this.topics) if (topics.has(topic)) this.rev[topic]++;
    const look = once((id: string) => api.item(id)); // several below want the same one
    const work: Promise<unknown>[] = [this.refreshState().then(() => this.compareFailed([...items], look))];
    if (items.size > 0 || whole) this.onItems([...items], whole, look);
    this.takeBack([...items], whole, look);
    if (items.size > 0 || whole) {
      if (isBox(ui.view)) work.push(this.refreshList(whole ? [] : [...items], look));
      const id = inbox.selectedId;
      if (id !== null && (whole || items.has(id))) work.push(reader.load(id, look));
    }
    await Promise.all(work);
  }

  /** What was told is known; what was counted by a refresh for another reason is not yet. */
  private async compareFailed(ids: string[], look: Look): Promise<void> {
    const now = this.state?.counts.failed ?? 0;
    const known = this.failedKnown ?? 0;
    if (now <= known) this.failedKnown = now;
    else this.failedKnown = known + await this.tellFailed(ids, look);
  }

  /** Says which answers did not arrive, and returns how many: they were decided, left the list, and nobody would look again. */
  private async tellFailed(ids: string[], look: Look): Promise<number> {
    const seen = await Promise.all(ids.slice(0, 20).map((id) => look(id).catch(() => null)));
    const failed = seen.filter((d) => d?.attention === 'failed' && !this.told.has(`${d.id} ${d.push?.attempts.length ?? 0}`));
    for (const d of failed) if (d) this.told.add(`${d.id} ${d.push?.attempts.length ?? 0}`);
    const first = failed[0];
    if (!first) return 0;
    const more = failed.length > 1 ? ` and ${plural(failed.length - 1, 'more', 'more')}` : '';
    const toast = ui.toast(`Your answer did not reach ${first.agent}: ${plain(first.title)}${more}`, 'bad', { label: 'Show', run: () => void this.openItem(first.id) });
    this.unreached = { id: first.id, toast };
    return failed.length;
  }

  /** What was said about an answer that did not arrive goes when it has. */
  private takeBack(ids: string[], whole: boolean, look: Look): void {
    const said = this.unreached;
    if (said === null || !(whole || ids.includes(said.id))) return;
    void look(said.id).then((d) => {
      if (d.attention === 'failed' || this.unreached !== said) return;
      ui.dismiss(said.toast);
      this.unreached = null;
    }, () => undefined);
  }

  private async refreshList(ids: string[], look: Look): Promise<void> {
    const before = new Set(inbox.rows.map((r) => r.id));
    await inbox.changed(ids, look);
    const arrived = inbox.rows.filter((r) => r.unread && !before.has(r.id) && r.box === 'needs');
    if (arrived.length === 1) ui.say(`New: ${plain(arrived[0]?.title)}, from ${arrived[0]?.agent ?? ''}`);
    else if (arrived.length > 1) ui.say(`${arrived.length} new items need you`);
  }

  async refreshState(): Promise<void> {
    try {
      this.accept(await api.state());
    } catch (e) {
      this.noticed(e);
    }
  }

  private accept(state: DeskState): void {
    this.state = state;
    reader.operator = state.operator;
    setBadge(state.counts.needs, windowTitle(state.counts.needs));
  }
}

export const desk = new Desk();
