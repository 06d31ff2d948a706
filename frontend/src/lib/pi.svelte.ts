// Sessions of pi: the list, and one transcript, loaded while somebody looks and again where the hub says that it moved.
import { shared } from './again';
import { api, failWords, Refused, stale } from './api';
import { desk } from './desk.svelte';
import type { PiAsk, PiInfo, PiRow, PiRowQuery, PiSession } from './pitypes';

const PAGE = 200;
const PAUSE_MS = 300;
/** More rows than this are not kept in the page: the far end is loaded again when it is looked at. */
const MOST = 1000;

class PiList {
  sessions = $state.raw<PiSession[]>([]);
  loaded = $state(false);
  problem = $state('');
  next = $state<number | undefined>(undefined);

  /** Loads the newest; calls that come while one is under way share the one after it. */
  readonly load = shared(() => this.fetch(), PAUSE_MS);

  private async fetch(): Promise<void> {
    try {
      const page = await api.piSessions();
      const older = this.sessions.filter((s) => !page.sessions.some((n) => n.id === s.id) && page.next_before !== undefined && s.last_seen <= page.next_before);
      this.sessions = [...page.sessions, ...older];
      if (older.length === 0) this.next = page.next_before;
      this.problem = '';
      this.loaded = true;
    } catch (e) {
      this.problem = failWords(e, stale);
      desk.noticed(e);
    }
  }

  async more(): Promise<void> {
    if (this.next === undefined) return;
    try {
      const page = await api.piSessions(this.next);
      this.sessions = [...this.sessions, ...page.sessions.filter((s) => !this.sessions.some((had) => had.id === s.id))];
      this.next = page.next_before;
      this.problem = '';
    } catch (e) {
      this.problem = failWords(e, stale);
      desk.noticed(e);
    }
  }
}

export const piList = new PiList();

/** One session: its newest rows, or those around a place that was asked for. */
export class Transcript {
  session = $state.raw<PiSession | null>(null);
  info = $state.raw<PiInfo | null>(null);
  asks = $state.raw<PiAsk[]>([]);
  /** How long nothing was heard of it while it was at work. */
  quiet = $state(0);
  rows = $state.raw<PiRow[]>([]);
  found = $state.raw<PiRow[] | null>(null);
  problem = $state('');
  loaded = $state(false);
  /** Whether the newest rows are shown; if not, what comes is not added to them. */
  newest = $state(true);
  private rev = 0;
  private closed = false;

  constructor(readonly id: string) {}

  get first(): boolean { return (this.rows[0]?.n ?? 1) <= 1; }

  close(): void { this.closed = true; }

  /** Loads what changed; calls that come while one is under way share the one after it. */
  readonly changed = shared(() => this.fetch(), 0);

  private async fetch(): Promise<void> {
    let more = true;
    try {
      while (more && !this.closed) more = await this.step();
    } catch (e) {
      this.failed(e);
    }
  }

  /** Loads the next rows that changed; whether there are more. */
  private async step(): Promise<boolean> {
    const [at, page] = await Promise.all([api.piSession(this.id), api.piRows(this.id, this.rev === 0 ? { limit: PAGE } : { after: this.rev, limit: PAGE })]);
    if (this.closed) return false;
    this.session = at.session;
    this.info = at.info;
    this.asks = at.asks;
    this.quiet = at.quiet_ms;
    this.rev = Math.max(this.rev, page.rev);
    this.take(page.rows);
    this.problem = '';
    this.loaded = true;
    return page.more;
  }

  /** Rows that somebody asked for; null where they did not come, which is said as a problem of the session. */
  private async asked(q: PiRowQuery): Promise<PiRow[] | null> {
    try {
      const { rows } = await api.piRows(this.id, q);
      if (this.closed) return null;
      this.problem = '';
      return rows;
    } catch (e) {
      this.failed(e);
      return null;
    }
  }

  private failed(e: unknown): void {
    if (this.closed) return;
    this.problem = e instanceof Refused && e.status === 404 ? 'This session is no longer kept by the hub.' : failWords(e, stale);
    desk.noticed(e);
  }

  private take(rows: PiRow[]): void {
    if (rows.length === 0) return;
    const by = new Map(this.rows.map((r) => [r.n, r]));
    const last = this.rows.at(-1)?.n ?? 0;
    const first = this.rows[0]?.n ?? 0;
    for (const r of rows) if (by.has(r.n) || (this.newest && r.n > last) || this.rows.length === 0) { if (r.n >= first) by.set(r.n, r); }
    let all = [...by.values()].sort((a, b) => a.n - b.n);
    if (this.newest && all.length > MOST) all = all.slice(-MOST);
    this.rows = all;
  }

  async older(): Promise<void> {
    const first = this.rows[0]?.n;
    if (first === undefined || first <= 1) return;
    const rows = await this.asked({ before: first, limit: PAGE });
    if (!rows) return;
    let all = [...rows.filter((r) => r.n < first), ...this.rows];
    if (all.length > MOST) {
      all = all.slice(0, MOST);
      this.newest = false;
    }
    this.rows = all;
  }

  /** Shows the rows from a little before that one; false where they did not come. */
  async at(n: number): Promise<boolean> {
    this.found = null;
    if (this.rows.some((r) => r.n === n)) return true;
    const rows = await this.asked({ from: Math.max(1, n - 20), limit: PAGE });
    if (!rows) return false;
    this.rows = rows;
    this.newest = (rows.at(-1)?.n ?? 0) >= (this.session?.rows ?? 0);
    return true;
  }

  /** The row of a call: the newest that has its id. */
  async placeOf(call: string): Promise<number | undefined> {
    const of = (rows: readonly PiRow[]) => rows.findLast((r) => r.tool?.call === call)?.n;
    return of(this.rows) ?? of((await this.asked({ q: call, limit: 50 })) ?? []);
  }

  async toNewest(): Promise<void> {
    const rows = await this.asked({ limit: PAGE });
    if (!rows) return;
    this.newest = true;
    this.rows = rows;
  }

  async search(q: string): Promise<void> {
    if (q.trim() === '') {
      this.found = null;
      return;
    }
    const rows = await this.asked({ q, limit: 50 });
    if (rows) this.found = rows.toReversed();
  }
}
