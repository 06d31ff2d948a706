// The item in the pane: always the one that is selected, or nothing.
import { api, failWords, Refused, type Look } from './api';
import { drafts } from './drafts.svelte';
import { plain } from './format';
import { inbox } from './inbox.svelte';
import { decidedBy, endedWords } from './itemwords';
import { takesText } from './keys';
import type { Detail, Row } from './types';
import { ui } from './ui.svelte';

/** After the item is on show: long enough for a double click or a second press meant for the item before. */
const ARM_MS = 350;
const DWELL_MS = 700;

class Reader {
  detail = $state.raw<Detail | null>(null);
  problem = $state<string | null>(null);
  /** A call about this item is under way; its controls wait. */
  busy = $state(false);
  /** False for a moment after the selection moved on by itself: what is pressed then was meant for the item before. */
  armed = $state(true);

  /** The item on show that ended while it was on show, by somebody else's hand or by the person's own elsewhere. */
  ended = $state<string | null>(null);
  /** Somebody was writing when it ended so. */
  typing = $state(false);
  /** Who the person is, to the hub. */
  operator = '';

  private abort: AbortController | null = null;
  private armTimer: ReturnType<typeof setTimeout> | undefined;
  private dwellTimer: ReturnType<typeof setTimeout> | undefined;

  /** Selects an item and loads it. `advanced` says that the person did not choose it. */
  open(id: string | null, advanced = false): void {
    clearTimeout(this.armTimer);
    clearTimeout(this.dwellTimer);
    this.abort?.abort();
    const left = inbox.selectedId;
    if (left !== null && left !== id) {
      drafts.leave(left);
      ui.endHint();
    }
    inbox.select(id);
    this.problem = null;
    this.ended = null;
    this.typing = false;
    this.busy = false;
    this.armed = !advanced;
    if (this.detail?.id !== id) this.detail = null;
    else this.arm();
    if (id === null) return;
    void this.load(id);
    this.linger();
  }

  /** What is selected counts as read when it has been on show for a moment. Called as it is selected, and as the pane comes up. */
  linger(): void {
    const id = inbox.selectedId;
    clearTimeout(this.dwellTimer);
    if (id !== null) this.dwellTimer = setTimeout(() => this.markRead(id), DWELL_MS);
  }

  /** Takes no answer for a moment: the person has just typed somewhere else, and may not have seen yet what the keys are for now. */
  settle(): void {
    if (this.detail === null) return;
    clearTimeout(this.armTimer);
    this.armed = false;
    this.arm();
  }

  private arm(): void {
    if (!this.armed) this.armTimer = setTimeout(() => { this.armed = true; }, ARM_MS);
  }

  async load(id: string, look?: Look): Promise<void> {
    const abort = new AbortController();
    this.abort?.abort();
    this.abort = abort;
    try {
      const detail = await (look ? look(id) : api.item(id, abort.signal));
      if (abort.signal.aborted) return;
      this.take(detail);
      this.problem = null;
    } catch (e) {
      if (abort.signal.aborted || inbox.selectedId !== id) return;
      const gone = e instanceof Refused && e.status === 404;
      this.problem = gone ? 'This item is no longer kept by the hub.' : failWords(e, 'The item will load when it is back.');
    }
  }

  /** Accepts a newer state of the item on show; of any other it is none of the pane's business. */
  take(detail: Detail, mine = false): void {
    if (detail.id !== inbox.selectedId) return;
    if (this.detail?.id === detail.id && detail.rev < this.detail.rev) return;
    const before = this.detail;
    this.detail = detail;
    if (before?.id !== detail.id) this.arm();
    const takes = detail.state === 'open' && detail.held_decision === undefined;
    const kept = this.ended === detail.id; // what the person wrote here, as it was decided elsewhere
    if (takes && kept && this.typing) this.writeOn();
    if (mine || takes) this.ended = null;
    if (mine || takes || before?.id !== detail.id || before.state !== 'open' || detail.to) return;
    const byMe = decidedBy(detail, this.operator);
    if (byMe && before.held_decision) {
      if (detail.state !== 'open' && !kept) drafts.drop(detail.id);
      return;
    }
    const active = document.activeElement as HTMLElement | null;
    // Where the block greyed a moment before it ended, the focus fell out of the field that was written in.
    const fell = active === document.body && drafts.of(detail.id).editor !== null;
    const had = fell || (active !== null && active.closest('[data-decision]') !== null);
    const typing = fell || (had && takesText(active));
    if (byMe && (this.busy || !typing)) return; // told of before the call was answered, or done elsewhere with nothing lost here
    this.ended = detail.id;
    this.typing = typing;
    ui.say(`${plain(detail.title)}: ${endedWords(detail, this.operator)}`);
    // The field that had the focus is gone. What is still being typed must be no command: it goes where it says what was written.
    if (had) setTimeout(() => (document.querySelector<HTMLElement>('[data-kept]') ?? document.querySelector<HTMLElement>('[data-reading]'))?.focus({ preventScroll: true }));
  }

  /** The decision made elsewhere was taken back: whoever was writing goes on in the field, and what slips past it decides nothing. */
  private writeOn(): void {
    this.typing = false;
    this.settle();
    setTimeout(() => document.querySelector<HTMLElement>('[data-decision] :is(textarea, input:not([type="radio"], [type="checkbox"]))')?.focus({ preventScroll: true }));
  }

  /** Takes what a mark made of the item on show. Where it ended meanwhile, that is looked up, to be said like any other end. */
  marked(row: Row): void {
    const d = this.detail;
    if (d?.id !== row.id || row.rev < d.rev) return;
    if (row.state === d.state) this.detail = { ...d, ...row };
    else void this.load(row.id);
  }

  private markRead(id: string): void {
    if (inbox.selectedId !== id || document.visibilityState === 'hidden') return;
    if (document.querySelector('[data-item-pane]')?.checkVisibility() !== true) return; // in a narrow window it is behind the list
    const unread = inbox.selected?.unread ?? this.detail?.unread ?? false;
    if (unread) void this.mark(id, { read: true });
  }

  private async mark(id: string, marks: { read: boolean }): Promise<void> {
    try {
      const row = await api.mark(id, marks);
      inbox.patch(row);
      this.marked(row);
    } catch {
      // it stays bold: nothing was claimed
    }
  }

  /** Whether a decision pressed now would land on what the person sees. */
  get ready(): boolean {
    const d = this.detail;
    return d !== null && d.id === inbox.selectedId && this.armed && !this.busy
      && d.state === 'open' && d.answerable.ok && d.held_decision === undefined;
  }
}

export const reader = new Reader();
