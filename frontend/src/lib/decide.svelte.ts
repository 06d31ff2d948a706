// Sending a decision. It is for the one item that the person sees, and it goes out once.
import { api, failWords, Refused, unsure, type Look, type ResolveBody } from './api';
import { clock } from './clock.svelte';
import { desk } from './desk.svelte';
import { drafts } from './drafts.svelte';
import { plain } from './format';
import { inbox } from './inbox.svelte';
import { heldName, stateName } from './itemwords';
import { reader } from './reader.svelte';
import type { Detail } from './types';
import { ui } from './ui.svelte';
import { after } from './windowing';

export interface Problem { message: string; details: { pointer: string; message: string }[] }
/** `back` brings the person to where they decided, if that was not at the item. */
export interface Held { id: string; title: Detail['title']; what: string; until: number; /** Brings back what was written; taken back elsewhere, beside what is on show. */ back?: (elsewhere: boolean) => void }

/** When a held decision leaves, in words. The clock on screen may be a second behind: it never says more than there is. */
export function goesOut(until: number): string {
  void clock.now;
  const rest = Math.ceil((until - Date.now()) / 1000);
  return rest > 0 ? `goes out in ${rest} s` : 'going out';
}

class Decisions {
  /** Decisions that can still be taken back, newest last. */
  held = $state<Held[]>([]);
  /** Of those, the ones that are being taken back here. */
  private readonly undoing = new Set<string>();
  /** What the hub said against the last attempt, per item. */
  problem = $state<{ id: string; at: Problem } | null>(null);
  /** The open editor's way to send, and a task's to tick its n-th step, for the keys. */
  sender: { id: string; send: () => void; tick?: (n: number) => void } | null = null;

  /** The decision that was last told, while its sending is not settled. */
  private told: { id: string; said: string; toast: number; waits: boolean } | null = null;

  /** Decides item `id`, if it is the one on show and open. `said` is what the person did, in words; `what`
   *  is the choice alone. */
  async send(id: string, body: ResolveBody, said: string, what = said): Promise<boolean> {
    if (inbox.selectedId !== id || !reader.ready || desk.offline) return false;
    const draft = drafts.of(id);
    const comment = draft.comment.trim();
    if (comment !== '' && body.comment === undefined) body.comment = comment;
    const index = inbox.index;
    const row = inbox.selected;
    reader.busy = true;
    this.problem = null;
    try {
      const detail = await api.resolve(id, body);
      if (!detail.held_decision) drafts.drop(id); // taken back, the words are still there
      this.settled(detail, said, what, after(inbox.rows, inbox.index >= 0 ? inbox.index : row ? index : -1)?.id ?? null);
      return true;
    } catch (e) {
      this.failed(id, e, body.rule !== undefined);
      return false;
    } finally {
      if (inbox.selectedId === id) reader.busy = false;
    }
  }

  private settled(detail: Detail, said: string, what: string, next: string | null): void {
    const mine = inbox.selectedId === detail.id;
    reader.take(detail, true);
    if (detail.held_decision) this.keep({ id: detail.id, title: detail.title, what, until: detail.held_decision.commit_at });
    else {
      if (!ui.firstRun) this.tell(detail, said);
      ui.say(said);
    }
    if (!ui.firstRun && mine) {
      if (next === null) ui.pane = 'list';
      reader.open(next, true);
      setTimeout(() => { // the control that was pressed is gone: the focus goes on to the next item
        if (document.activeElement === document.body) document.querySelector<HTMLElement>(next === null ? '[data-list]' : '[data-reading]')?.focus({ preventScroll: true });
      });
    }
    if (ui.firstRun) setTimeout(() => { if (document.activeElement === document.body) document.querySelector<HTMLElement>('[data-item-pane]')?.focus({ preventScroll: true }); });
    inbox.patch(detail);
    if (detail.unread) void api.mark(detail.id, { read: true }).then((row) => inbox.patch(row), () => undefined); // what was decided was read
    void desk.refreshState();
  }

  /** Notes a decision that can be taken back for a while. */
  keep(h: Held): void {
    ui.endToasts(); // what Ctrl+Z takes back is this now
    this.held = [...this.held.filter((x) => x.id !== h.id), h];
    ui.say(`Not sent yet: ${h.what}`);
  }

  /** Says what was done. Whether its address has to be approved first turns out a moment later, and then that is said instead. */
  private tell(detail: Detail, said: string, instead?: number): void {
    const push = detail.push;
    const waits = push?.state === 'waiting_approval';
    const toast = ui.toast(`${waits ? `${said}, not sent: approve ${push.host}` : said}: ${plain(detail.title)}`, waits ? 'wait' : 'plain',
      { label: 'Show', run: () => void desk.openItem(detail.id) }, instead);
    this.told = waits || push?.state === 'pending' ? { id: detail.id, said, toast, waits } : null;
  }

  /** Told which items changed, or that any may have: there may be decisions, too, that this page knows nothing of. */
  follow(ids: readonly string[], whole: boolean, look: Look): void {
    for (const h of this.held) if (whole || ids.includes(h.id)) void this.settle(h, look);
    if (whole) void this.find(look).catch(() => undefined); // the link is told of that by others
    const told = this.told;
    if (!told || !(whole || ids.includes(told.id))) return;
    void look(told.id).then((d) => {
      if (this.told !== told || (d.push?.state === 'pending' && !told.waits)) return;
      const waits = d.push?.state === 'waiting_approval';
      if (waits && told.waits) return;
      if (waits) return this.tell(d, told.said, told.toast);
      if (told.waits) ui.dismiss(told.toast); // it was approved
      this.told = null;
    }, () => undefined);
  }

  /** Looks what became of a held decision, and says where it came to nothing. */
  async settle(h: Held, look: Look = api.item): Promise<void> {
    try {
      const d = await look(h.id);
      if (this.undoing.has(h.id) || !this.held.includes(h) || d.held_decision?.commit_at === h.until) return;
      this.forget(h.id);
      if (d.outcome?.resolved_at === h.until && d.outcome.actor.startsWith('human:')) return; // it went out
      h.back?.(true);
      const instead = d.state === 'open' ? 'taken back' : stateName(d.state).toLowerCase();
      ui.toast(`${h.what} was not sent: ${instead} meanwhile.`, 'bad', { label: 'Show', run: () => void desk.openItem(d.id) });
    } catch (e) {
      if (e instanceof Refused && e.status !== 401) this.forget(h.id); // it is kept no more
    }
  }

  /** Finds decisions that are kept back from before this page was there. */
  private async find(look: Look): Promise<void> {
    const { rows } = await api.items({ kept: true });
    for (const { id } of rows) {
      const d = await look(id);
      if (!d.held_decision || this.held.some((h) => h.id === id)) continue;
      this.held = [{ id, title: d.title, what: heldName(d), until: d.held_decision.commit_at }, ...this.held];
    }
  }

  private failed(id: string, e: unknown, withRule: boolean): void {
    if (e instanceof Refused) {
      if (e.item) {
        reader.take(e.item);
        inbox.patch(e.item);
        if (e.status === 409) { // the outcome on show says it all, but for a rule that was not made
          if (withRule) ui.toast(e.message, 'bad');
          return;
        }
      }
      this.problem = { id, at: { message: e.message, details: e.details } };
      if (e.status === 404 || e.status === 409 || e.status === 410) void reader.load(id);
    } else {
      this.problem = { id, at: { message: failWords(e, 'Whether this was sent shows when it is back.'), details: [] } };
    }
    desk.noticed(e);
  }

  async undo(id: string): Promise<void> {
    if (this.undoing.has(id)) return;
    this.undoing.add(id); // what comes of it is told here, and not as something that was done elsewhere
    try {
      const detail = await api.undo(id);
      const back = this.held.find((h) => h.id === id)?.back;
      this.forget(id);
      if (back) {
        back(false);
        ui.say('Taken back');
        return;
      }
      ui.view = detail.box;
      if (inbox.box !== detail.box || inbox.searching) await inbox.show({ box: detail.box, q: '', scope: 'all' });
      else await inbox.reload();
      reader.open(id);
      ui.pane = 'item';
      ui.say('Taken back');
    } catch (e) {
      if (e instanceof Refused) this.forget(id);
      ui.toast(failWords(e, unsure), 'bad');
    } finally {
      this.undoing.delete(id);
    }
  }

  forget(id: string): void {
    this.held = this.held.filter((h) => h.id !== id);
  }
}

export const decisions = new Decisions();
desk.onItems = (ids, whole, look) => decisions.follow(ids, whole, look);
