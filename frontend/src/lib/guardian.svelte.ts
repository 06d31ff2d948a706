// The sessions of guarded agents, and the steps of one. Loaded while somebody looks, and again when the hub says they changed.
import { api, failWords, Refused, stale } from './api';
import { desk } from './desk.svelte';
import type { Chain, GuardAlert, GuardedView, StepView } from './guardtypes';
import { Loaded } from './loaded.svelte';

const PAGE = 200;
const PAUSE_MS = 250;
/** Checking a chain is work for the hub: while steps come, it is asked for now and then. */
const CHECK_MS = 2000;

class Guardian extends Loaded<{ sessions: GuardedView[]; alerts: GuardAlert[]; more: boolean }> {
  private pages = 1;

  constructor() {
    super(() => this.shown(), { sessions: [], alerts: [], more: false }, ['guardian']);
  }

  get sessions(): GuardedView[] { return this.it.sessions; }
  get alerts(): GuardAlert[] { return this.it.alerts; }
  get more(): boolean { return this.it.more; }

  /** As many pages as are shown. */
  private async shown(): Promise<{ sessions: GuardedView[]; alerts: GuardAlert[]; more: boolean }> {
    const first = await api.guardian();
    const sessions = [...first.sessions];
    let cursor = first.next_cursor;
    for (let i = 1; i < this.pages && cursor !== undefined; i++) {
      const page = await api.guardian(cursor);
      sessions.push(...page.sessions);
      cursor = page.next_cursor;
    }
    return { sessions, alerts: first.alerts, more: cursor !== undefined };
  }

  showMore(): Promise<void> {
    if (this.more) this.pages++;
    return this.load();
  }
}

export const guardian = new Guardian();

/** One session's steps: sparse, loaded where they are looked at. A step's place is its number, counted from the first. */
export class Steps {
  session = $state.raw<GuardedView | null>(null);
  chain = $state.raw<Chain | null>(null);
  rows = $state.raw<(StepView | undefined)[]>([]);
  problem = $state('');
  /** True once the first answer is there. */
  loaded = $state(false);
  private first = 1;
  private range = { start: 0, end: 0 };
  private readonly under = new Set<number>();
  private closed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private checkTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly key: string) {}

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.checkTimer);
  }

  /** Loads the rows of this range that are not there. */
  want(start: number, end: number): void {
    this.range = { start, end };
    if (!this.loaded) return;
    for (let page = Math.floor(start / PAGE); page * PAGE < Math.min(end, this.rows.length); page++) {
      const from = page * PAGE;
      const to = Math.min(from + PAGE, this.rows.length);
      let missing = false;
      for (let i = from; i < to && !missing; i++) missing = this.rows[i] === undefined;
      if (missing) void this.page(page);
    }
  }

  /** Loads what is on screen again, soon: verdicts come after their steps, and new steps at the end. */
  changed(): void {
    if (!this.loaded) return void this.page(0);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const pages = new Set([Math.floor(this.range.start / PAGE), Math.floor(Math.max(0, Math.min(this.range.end, this.rows.length) - 1) / PAGE)]);
      for (const p of pages) void this.page(p);
    }, PAUSE_MS);
    this.checkTimer ??= setTimeout(() => {
      this.checkTimer = undefined;
      void api.guardedSession(this.key, { limit: 1 }).then((got) => { if (!this.closed) this.chain = got.chain ?? this.chain; }, () => undefined);
    }, CHECK_MS);
  }

  private async page(n: number): Promise<void> {
    if (this.under.has(n) || this.closed) return;
    this.under.add(n);
    try {
      const got = await api.guardedSession(this.key, n === 0 ? { limit: PAGE } : { after: this.first + n * PAGE - 1, limit: PAGE });
      if (this.closed) return;
      if (n === 0) this.first = got.steps[0]?.seq ?? this.first;
      this.take(got.session, got.steps);
      if (got.chain) this.chain = got.chain;
    } catch (e) {
      if (this.closed) return;
      this.problem = e instanceof Refused && e.status === 404 ? 'This session is no longer kept by the hub.' : failWords(e, stale);
      desk.noticed(e);
    } finally {
      this.under.delete(n);
    }
  }

  private take(session: GuardedView, steps: StepView[]): void {
    this.session = session;
    const last = (steps.at(-1)?.seq ?? 0) - this.first + 1;
    const rows = this.rows.slice();
    rows.length = Math.max(session.steps, last, rows.length);
    for (const s of steps) rows[s.seq - this.first] = s;
    this.rows = rows;
    this.problem = '';
    this.loaded = true;
    this.want(this.range.start, this.range.end);
  }
}
