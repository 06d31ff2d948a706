// The list: one query, its rows page by page, and the selection, which is an id and never a position.
import { api, failWords, type ItemQuery, type Look } from './api';
import type { Box, Row } from './types';

const PAGE = 200;
/** The page size when the person has scrolled far ahead of what is loaded; the hub gives no more at once. */
const LEAP = 500;
/** Up to here a change reloads what is loaded; deeper lists are patched row by row and reloaded at leisure. */
const SHALLOW = 400;
const LEISURE_MS = 3000;

export class Inbox {
  box = $state<Box>('needs');
  q = $state('');
  /** While searching: one box, or all of them. */
  scope = $state<Box | 'all'>('all');
  agent = $state<string | null>(null);

  rows = $state.raw<Row[]>([]);
  total = $state(0);
  /** 'first' until the first page of this query is there. */
  loading = $state<'first' | 'more' | null>('first');
  problem = $state<string | null>(null);

  selectedId = $state<string | null>(null);
  index = $derived(this.selectedId === null ? -1 : this.rows.findIndex((r) => r.id === this.selectedId));
  selected = $derived<Row | null>(this.rows[this.index] ?? null);

  /** Told before rows are replaced, so that the list can keep its scroll position. */
  onReplace: (before: Row[], after: Row[]) => void = () => {};
  /** Told when the list could not be loaded: this browser may be signed out. */
  onProblem: (e: unknown) => void = () => {};

  private cursor: string | undefined;
  /** The query that the rows are of. */
  private of = '';
  private generation = 0;
  private wanted = 0;
  private lastIndex = -1;
  private leisure: ReturnType<typeof setTimeout> | undefined;
  private filling: Promise<void> | null = null;
  private reloading: Promise<void> | null = null;
  /** How many callers want the whole list, however little of it is on screen. */
  private greedy = 0;

  get searching(): boolean {
    return this.q.trim() !== '';
  }

  show(query: { box?: Box; q?: string; scope?: Box | 'all'; agent?: string | null }): Promise<void> {
    if (query.box !== undefined) this.box = query.box;
    if (query.q !== undefined) this.q = query.q;
    if (query.scope !== undefined) this.scope = query.scope;
    if (query.agent !== undefined) this.agent = query.agent;
    this.wanted = 0;
    this.lastIndex = -1;
    this.loading = 'first';
    return this.reload(true);
  }

  select(id: string | null): void {
    this.selectedId = id;
    if (id === null) this.lastIndex = -1;
    else if (this.index >= 0) this.lastIndex = this.index;
  }

  /** The row `step` away from the selection; where the selected row has left, from the place it had. */
  neighbour(step: number): Row | undefined {
    if (this.rows.length === 0) return undefined;
    if (this.index < 0 && this.lastIndex < 0) return this.rows[step > 0 ? 0 : this.rows.length - 1];
    const gone = this.index < 0;
    const from = gone ? this.lastIndex : this.index;
    const to = gone && step > 0 ? from + step - 1 : from + step;
    return this.rows[Math.max(0, Math.min(this.rows.length - 1, to))];
  }

  /** Sees to it that rows up to `end` are there, page after page. */
  want(end: number): void {
    this.wanted = Math.min(end, this.total);
    this.pull();
  }

  private pull(): void {
    if (this.filling || this.reloading || this.cursor === undefined) return;
    if (this.greedy === 0 && this.rows.length >= this.wanted) return;
    this.filling = this.fill(this.generation).finally(() => { this.filling = null; });
  }

  /** Loads the rest of the list, page after page until there is no more. False when it could not be had. */
  async whole(): Promise<boolean> {
    const query = this.name();
    this.greedy++;
    try {
      while (query === this.name()) {
        if (this.reloading) await this.reloading;
        else {
          if (this.cursor === undefined) return this.rows.length >= this.total;
          this.pull();
          await this.filling;
        }
        if (this.problem !== null) return false;
      }
      return false;
    } finally {
      this.greedy--;
    }
  }

  private name(): string {
    return JSON.stringify([this.box, this.q.trim(), this.scope, this.agent]);
  }

  private async fill(generation: number): Promise<void> {
    this.loading = 'more';
    try {
      while (generation === this.generation && this.cursor !== undefined && (this.greedy > 0 || this.rows.length < this.wanted + 50)) {
        const gap = (this.greedy > 0 ? this.total : this.wanted) - this.rows.length;
        const page = await api.items({ ...this.query(this.cursor), limit: gap > LEAP ? LEAP : PAGE });
        if (generation !== this.generation) return;
        const known = new Set(this.rows.map((r) => r.id));
        this.rows = [...this.rows, ...page.rows.filter((r) => !known.has(r.id))];
        this.total = Math.max(page.total, this.rows.length);
        this.cursor = page.next_cursor;
        if (this.cursor === undefined) this.total = this.rows.length;
      }
      this.problem = null;
    } catch (e) {
      if (generation === this.generation) this.fail(e);
    } finally {
      if (generation === this.generation) this.loading = null;
    }
  }

  /** Loads the query again as far as it is needed and swaps the rows at once. */
  async reload(fresh = false): Promise<void> {
    const mine = this.load(fresh);
    this.reloading = mine;
    await mine;
    if (this.reloading !== mine) { // a later one took over: the list is there when that is through
      while (this.reloading !== null) await this.reloading;
      return;
    }
    this.reloading = null;
    this.want(this.wanted);
  }

  private async load(fresh: boolean): Promise<void> {
    const generation = ++this.generation;
    clearTimeout(this.leisure);
    this.leisure = undefined;
    const need = fresh ? 1 : Math.max(1, this.wanted, this.index + 30);
    try {
      const rows: Row[] = [];
      let cursor: string | undefined;
      let total = 0;
      do {
        const page = await api.items(this.query(cursor));
        if (generation !== this.generation) return;
        rows.push(...page.rows);
        cursor = page.next_cursor;
        total = page.total;
      } while (cursor !== undefined && rows.length < need);
      this.replace(rows, cursor === undefined ? rows.length : Math.max(total, rows.length), cursor);
      this.of = this.name();
      this.problem = null;
    } catch (e) {
      if (generation === this.generation) this.fail(e);
    } finally {
      if (generation === this.generation) this.loading = null;
    }
  }

  /** After a change of these items (none named: of anything). */
  async changed(ids: string[], look: Look): Promise<void> {
    if (ids.length === 0 || (this.greedy === 0 && Math.max(this.wanted, this.index) <= SHALLOW)) return this.reload();
    this.leisure ??= setTimeout(() => void this.reload(), LEISURE_MS);
    const loaded = new Set(this.rows.map((r) => r.id));
    const generation = this.generation;
    const seen = await Promise.all(ids.filter((id) => loaded.has(id)).slice(0, 20).map((id) => look(id).catch(() => null)));
    if (generation === this.generation) for (const row of seen) if (row) this.patch(row);
  }

  /** Puts a row's newer self in its place, or takes it out when it belongs elsewhere. */
  patch(row: Row): void {
    const at = this.rows.findIndex((r) => r.id === row.id);
    if (at < 0) return;
    if (this.index >= 0) this.lastIndex = this.index;
    const here = this.searching ? this.scope === 'all' || row.box === this.scope : row.box === this.box;
    const found = this.rows[at]?.found; // only a search says it
    const rows = here ? this.rows.with(at, { ...pick(row), ...(found && { found }) }) : this.rows.toSpliced(at, 1);
    this.replace(rows, this.total - (here ? 0 : 1), this.cursor);
  }

  private replace(rows: Row[], total: number, cursor: string | undefined): void {
    if (this.index >= 0) this.lastIndex = this.index;
    const before = this.rows;
    this.onReplace(before, rows);
    this.rows = rows;
    this.total = total;
    this.cursor = cursor;
  }

  private query(cursor: string | undefined): ItemQuery {
    const q: ItemQuery = { limit: PAGE };
    if (this.searching) {
      q.q = this.q.trim();
      if (this.scope !== 'all') q.box = this.scope;
    } else q.box = this.box;
    if (this.agent !== null) q.agent = this.agent;
    if (cursor !== undefined) q.cursor = cursor;
    return q;
  }

  /** Rows of another query do not stay under this one's name. */
  private fail(e: unknown): void {
    const others = this.of !== this.name();
    if (others) {
      this.replace([], 0, undefined);
      this.of = '';
    }
    this.problem = failWords(e, others ? 'What is here cannot be shown.' : 'The list is as it was.');
    this.onProblem(e);
  }
}

/** Every member of a row: one that is forgotten here does not compile. */
const members: Record<keyof Row, true> = {
  id: true, rev: true, lost: true, protocol: true, kind: true, state: true, box: true, agent: true, agent_text: true, project: true, title: true, priority: true, sensitive: true,
  received_at: true, expires_at: true, resolved_at: true, unread: true, starred: true, archived: true, snoozed_until: true, checklist: true, waiting_now: true,
  attention: true, undo_until: true, held: true, ask: true, verdict: true, to: true, undelivered: true, progress: true, answer: true, found: true,
};

/** Only what a row shows: a Detail would keep whole bodies alive in the list. */
const pick = (r: Row): Row => Object.fromEntries(Object.entries(r).filter(([key]) => key in members)) as unknown as Row;

export const inbox = new Inbox();
