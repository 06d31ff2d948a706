// What each command does. Every one acts on the selected id, or on nothing.
import { flushSync } from 'svelte';
import { piOpen } from './piopen.svelte';
import { api, failWords, quit, unsure, type Marks } from './api';
import { compose } from './compose.svelte';
import { decisions } from './decide.svelte';
import { allow, chooseByKey, closeEditor, edit, fill } from './deciding.svelte';
import { desk } from './desk.svelte';
import { drafts } from './drafts.svelte';
import { inFirstRun } from './firstrun';
import { inbox } from './inbox.svelte';
import type { CommandId } from './keys';
import { focusItem, focusList, focusPage, go, leaveAgent, leavePi, leaveSession, onlyAgent } from './navigate';
import { prefs } from './prefs.svelte';
import { reader } from './reader.svelte';
import { rules } from './rules.svelte';
import { inSight } from './sight';
import { talk } from './talk.svelte';
import type { Box } from './types';
import { isBox, UNDO, ui, type View } from './ui.svelte';
import { whyNot, type Scene } from './whynot';
import { after } from './windowing';

/** What was open when the search began: leaving the search comes back to it. */
let openBefore: string | null = null;

export function search(q: string): void {
  if (q === inbox.q) return;
  if (!inbox.searching) openBefore = inbox.selectedId;
  void inbox.show({ q }).then(onlyFound);
}

/** Searches in one box, or in all of them. */
export function searchIn(scope: Box | 'all'): void {
  void inbox.show({ scope }).then(onlyFound);
}

/** While searching, the pane shows what was found or nothing: an item with live buttons must be one of the list. */
function onlyFound(): void {
  if (inbox.problem !== null || inbox.loading === 'first') return;
  if (inbox.searching) {
    if (inbox.selectedId !== null && inbox.index < 0) reader.open(null);
    return;
  }
  if (inbox.selectedId === null && inbox.rows.some((r) => r.id === openBefore)) reader.open(openBefore);
  openBefore = null;
}

function move(step: number): void {
  if (!isBox(ui.view)) return moveFocus(step);
  const row = inbox.neighbour(step);
  if (row && row.id !== inbox.selectedId) reader.open(row.id);
}

/** On a page, the same keys go from row to row. */
function moveFocus(step: number): void {
  const stops = [...document.querySelectorAll<HTMLElement>('main.page [data-stop]')].filter((el) => el.checkVisibility());
  const active = document.activeElement;
  const holds = (el: Element | null) => el !== null && active !== null && active !== document.body && el.contains(active);
  let at = stops.findIndex(holds);
  if (at < 0) at = stops.findIndex((el) => holds(el.parentElement)); // what stands beside it belongs to it
  const next = at < 0 ? firstStop(stops, step) : stops[Math.max(0, Math.min(stops.length - 1, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/** Where the keys begin: at the end they go from; in a list that was scrolled at what is in sight, the newest if it is. */
function firstStop(stops: HTMLElement[], step: number): HTMLElement | undefined {
  const seen = stops.filter(inSight);
  if (seen.length === 0 || seen[0] === stops[0]) return stops.at(step > 0 ? 0 : -1);
  return step < 0 || seen.at(-1) === stops.at(-1) ? seen.at(-1) : seen[0];
}

async function jump(end: 'first' | 'last'): Promise<void> {
  const from = inbox.selectedId;
  if (end === 'last' && !(await inbox.whole())) return; // the last there is, not the last that is loaded
  const row = inbox.rows.at(end === 'first' ? 0 : -1);
  if (row && inbox.selectedId === from && isBox(ui.view)) reader.open(row.id);
}

/** Changes the person's own marks, and puts them back when the hub refuses. Says whether it took them. */
export async function mark(id: string, marks: Marks): Promise<boolean> {
  let done = true;
  const row = inbox.rows.find((r) => r.id === id);
  try {
    const now = await api.mark(id, marks);
    inbox.patch(now);
    reader.marked(now);
  } catch (e) {
    done = false;
    if (row) inbox.patch(row);
    ui.toast(failWords(e, unsure), 'bad');
    desk.noticed(e);
  }
  void desk.refreshState();
  return done;
}

async function markAllRead(): Promise<void> {
  try {
    await api.markAllRead(inbox.box);
  } catch (e) {
    ui.toast(failWords(e, unsure), 'bad');
    desk.noticed(e);
    return;
  }
  await inbox.reload();
  void desk.refreshState();
}

/** A mark that takes the item out of this list: the selection goes on. */
export async function putAway(id: string, marks: Marks): Promise<boolean> {
  const next = inbox.selectedId === id ? (after(inbox.rows, inbox.index)?.id ?? null) : undefined;
  const done = await mark(id, marks);
  if (inbox.rows.some((r) => r.id === id)) await inbox.reload(); // the hub says where it belongs now
  const gone = !inbox.rows.some((r) => r.id === id);
  if (gone && next !== undefined && inbox.selectedId === id) reader.open(next, true);
  return done;
}

/** Says that an item left the list, and offers the way back. */
function said(id: string, archived: boolean): void {
  if (inbox.rows.some((r) => r.id === id)) return;
  ui.toast(archived ? 'Put away in the archive.' : 'Back from the archive.', 'plain', { label: UNDO, run: () => void mark(id, { archived: !archived }).then(() => inbox.reload()) });
}

function back(): void {
  const id = inbox.selectedId;
  const active = document.activeElement as HTMLElement | null;
  if (ui.overlay) { ui.overlay = null; return; }
  if (active?.closest('[data-search]')) {
    if (inbox.searching) search('');
    else { ui.pane = 'list'; focusList(); }
    return;
  }
  if (isBox(ui.view) && id !== null && drafts.of(id).editor !== null) {
    const draft = drafts.of(id);
    if (draft.editor !== 'review') return closeEditor(id);
    draft.grab = true;
    draft.editor = 'arguments';
    return;
  }
  if (active && active !== document.body && active.matches('input, textarea, select')) {
    active.blur();
    if (!isBox(ui.view)) focusPage();
    return;
  }
  if (ui.view === 'agents' && ui.agent !== null) return leaveAgent();
  if (ui.view === 'guardian' && ui.session !== null) {
    if (ui.step === null) return leaveSession();
    const row = document.querySelector<HTMLElement>(`[data-stop="step-${ui.step}"]`);
    ui.step = null;
    (row ?? document.querySelector<HTMLElement>('main.page [role="list"]'))?.focus({ preventScroll: true });
    return;
  }
  if (ui.view === 'pi' && ui.pi !== null) return leavePi();
  if (ui.view === 'conversations' && ui.talk === null && talk.beginning) { talk.beginning = false; return; }
  if (ui.view === 'conversations' && ui.talk !== null) return go('conversations');
  if (ui.pane === 'item') { ui.pane = 'list'; focusList(); return; }
  if (inbox.searching) { search(''); focusList(); return; }
  if (inbox.agent !== null) onlyAgent(null);
}

export function openItem(): void {
  if (!isBox(ui.view)) return;
  const first = inbox.rows[0];
  if (inbox.selectedId === null && first) reader.open(first.id, true); // it may have come this moment: no decision right behind
  if (inbox.selectedId === null) return;
  if (document.activeElement?.closest('[data-reading]') && reader.ready && fill()) return; // Enter once more
  ui.pane = 'item';
  focusItem();
}

/** Takes back what was done last: what a toast still tells of, or else the last decision that was not sent yet. */
function undo(): void {
  const told = ui.undoable;
  if (told) {
    ui.dismiss(told.id);
    told.action?.run();
    return;
  }
  const last = decisions.held.at(-1)?.id ?? (reader.detail?.held_decision ? reader.detail.id : null);
  if (last !== null) void decisions.undo(last);
}

/** The rule whose row has the focus. */
const focusedRule = (): string | undefined => document.activeElement?.closest<HTMLElement>('[data-rule]')?.dataset['rule'];

/** Where the person writes in the conversation that is open. */
const talkField = (): HTMLElement | null => document.querySelector<HTMLElement>('[data-talk-write]');

/** Why this command cannot act now (lib/whynot.ts); null where it can. */
export function cannot(id: CommandId, byKey = false): string | null {
  if (ui.firstRun && !inFirstRun.has(id)) return '';
  if (id === 'pi-write' && ui.view === 'conversations' && ui.talk !== null) return talkField() ? null : 'This conversation has ended. Open it again first.';
  const box = isBox(ui.view);
  const selected = box && inbox.selectedId !== null;
  const detail = selected && reader.detail?.id === inbox.selectedId ? reader.detail : null;
  const scene: Scene = {
    box, selected, detail, rows: inbox.rows.length, unread: inbox.rows.some((r) => r.unread), row: selected ? (detail ?? inbox.selected) : null,
    byKey, rules: ui.view === 'rules' || ui.view === 'guardian', talks: ui.view === 'conversations' && ui.talk === null, pis: ui.view === 'pi' && ui.pi === null, rule: focusedRule() !== undefined,
    pi: ui.view === 'pi' && ui.pi !== null ? piOpen.can : null,
    shown: document.querySelector('[data-item-pane]')?.checkVisibility() === true, held: ui.undoable !== undefined || decisions.held.length > 0 || reader.detail?.held_decision !== undefined,
  };
  return whyNot(id, scene);
}

const views: Partial<Record<CommandId, View>> = {
  'go-needs': 'needs', 'go-waiting': 'waiting', 'go-notices': 'notices', 'go-done': 'done', 'go-archive': 'archive',
  'go-agents': 'agents', 'go-sent': 'sent', 'go-fleet': 'fleet', 'go-guardian': 'guardian', 'go-pi': 'pi', 'go-rules': 'rules', 'go-conversations': 'conversations', 'go-settings': 'settings',
};

export function run(id: CommandId, key = ''): void {
  const view = views[id];
  if (view && !ui.firstRun) {
    go(view);
    if (isBox(view)) focusList();
    else focusPage();
    return;
  }
  const why = cannot(id, key !== '');
  if (why !== null) {
    if (why !== '') ui.hint(why);
    return;
  }
  const selected = isBox(ui.view) ? inbox.selectedId : null;
  const marks = selected === null ? null : (inbox.selected ?? (reader.detail?.id === selected ? reader.detail : null));
  switch (id) {
    case 'next': return move(1);
    case 'prev': return move(-1);
    case 'first': case 'last': void jump(id); return;
    case 'open': return openItem();
    case 'back': return back();
    case 'choose': return chooseByKey(Number(key));
    case 'allow': return allow();
    case 'write': return edit('answer');
    case 'comment': return edit('comment');
    case 'decline': return edit('decline');
    case 'send': if (decisions.sender?.id === selected) decisions.sender?.send(); return;
    case 'undo': return undo();
    case 'star': if (marks) void mark(marks.id, { starred: !marks.starred }); return;
    case 'snooze': if (marks) ui.overlay = 'snooze'; return;
    case 'archive':
      if (marks) void putAway(marks.id, { archived: !marks.archived }).then(() => said(marks.id, !marks.archived));
      return;
    case 'unread': if (marks) void mark(marks.id, { read: false }); return;
    case 'mark-all-read': void markAllRead(); return;
    case 'message': return compose.open(ui.view === 'agents' && ui.agent !== null ? ui.agent : undefined);
    case 'new-talk':
      go('conversations');
      talk.beginning = true;
      return;
    case 'new-rule':
      if (ui.view !== 'rules') go('rules');
      return rules.open({ kind: 'new' });
    case 'new-pi':
      if (ui.view !== 'pi' || ui.pi !== null) go('pi');
      ui.overlay = 'pi-new';
      return;
    case 'pi-write': return ui.view === 'conversations' ? talkField()?.focus() : piOpen.focus('[data-pi-write]');
    case 'pi-model': return piOpen.focus('[data-pi-model]');
    case 'pi-thinking': return piOpen.focus('[data-pi-thinking]');
    case 'pi-fork': ui.overlay = 'pi-fork'; return;
    case 'pi-stop': void piOpen.stop(); return;
    case 'rule-up': case 'rule-down': {
      const rule = focusedRule();
      if (rule) void rules.move(rule, id === 'rule-up' ? -1 : 1);
      return;
    }
    case 'search': {
      const own = document.querySelector<HTMLInputElement>('main.page [data-filter] input');
      if (own) return own.select();
      if (!isBox(ui.view)) go('needs');
      ui.pane = 'list';
      flushSync(); // the next key must already land in the field
      document.querySelector<HTMLInputElement>('[data-search] input')?.select();
      return;
    }
    case 'help': case 'palette': ui.overlay = ui.overlay === id ? null : id; return;
    case 'quit': return quit();
    case 'theme': return prefs.set({ theme: prefs.dark ? 'light' : 'dark' });
    case 'density': return prefs.set({ density: prefs.density === 'compact' ? 'comfortable' : 'compact' });
  }
}
