// Where the person is: each way to a view, and the way back from it.
import { inbox } from './inbox.svelte';
import { reader } from './reader.svelte';
import { isBox, ui, type View } from './ui.svelte';

export function go(view: View): void {
  if (view !== ui.view) ui.endToasts();
  ui.view = view;
  ui.pane = 'list';
  ui.overlay = null;
  ui.agent = null;
  ui.session = null;
  ui.pi = null;
  ui.rule = null;
  ui.talk = null;
  ui.cameFrom = null;
  if (!isBox(view)) return;
  if (inbox.box !== view || inbox.searching || inbox.agent !== null) {
    reader.open(null);
    void inbox.show({ box: view, q: '', scope: view === 'fleet' ? 'fleet' : 'all', agent: null });
  } else void inbox.reload();
}

/** The open items of an agent, in the list. */
export function openItemsOf(agent: string): void {
  go('needs');
  reader.open(null);
  focusList();
  void inbox.show({ box: 'needs', q: '', scope: 'all', agent }).then(() => {
    if (inbox.rows.length === 0 && inbox.box === 'needs' && inbox.agent === agent) { ui.view = 'waiting'; void inbox.show({ box: 'waiting' }); }
  });
}

/** Opens a question that waits, in the list. */
export function openItem(id: string): void {
  go('needs');
  reader.open(id);
  ui.pane = 'item';
}

/** Opens a conversation. */
export function openTalk(id: string): void {
  ui.view = 'conversations';
  ui.talk = id;
  ui.overlay = null;
  ui.endToasts();
  focusPage();
}

/** Goes to an agent's page; from an item, the way back leads to the item. */
export function openAgent(id: string): void {
  ui.cameFrom = isBox(ui.view) ? ui.view : null;
  ui.view = 'agents';
  ui.agent = id;
  ui.overlay = null;
  ui.endToasts();
  focusPage();
}

/** Back from an agent's page to where it was opened. */
export function leaveAgent(): void {
  const from = ui.agent;
  ui.agent = null;
  leave(from);
}

function leave(from: string | null): void {
  if (ui.cameFrom) {
    ui.view = ui.cameFrom;
    ui.cameFrom = null;
    if (inbox.selectedId === null) { ui.pane = 'list'; focusList(); } else { ui.pane = 'item'; focusItem(); }
    return;
  }
  setTimeout(() => {
    [...document.querySelectorAll<HTMLElement>('main.page [data-stop]')].find((el) => el.dataset['stop'] === from)?.focus();
    focusPage();
  });
}

/** Goes to the steps of a guarded session; from an item, the way back leads to the item. */
export function openSession(key: string): void {
  ui.step = null;
  ui.cameFrom = isBox(ui.view) ? ui.view : null;
  ui.view = 'guardian';
  ui.session = key;
  ui.overlay = null;
  ui.endToasts();
  focusPage();
}

/** Goes to a session of pi, at the call that asks; from an item, the way back leads to the item. */
export function openPi(id: string, call: string | null = null): void {
  ui.cameFrom = isBox(ui.view) ? ui.view : null;
  ui.view = 'pi';
  ui.pi = id;
  ui.piCall = call;
  ui.overlay = null;
  ui.endToasts();
  focusPage();
}

export function leavePi(): void {
  const from = ui.pi;
  ui.pi = null;
  leave(from);
}

export function leaveSession(): void {
  const from = ui.session;
  ui.session = null;
  leave(from);
}

/** Shows a rule in its list. */
export function openRule(id: string): void {
  go('rules');
  ui.rule = id;
}

export function onlyAgent(agent: string | null): void {
  if (!isBox(ui.view)) {
    ui.view = inbox.box;
    ui.pane = 'list';
  }
  reader.open(null);
  void inbox.show({ agent });
}

/** What one agent wrote to others. */
export function betweenAgents(agent: string): void {
  ui.view = 'fleet';
  ui.pane = 'list';
  reader.open(null);
  void inbox.show({ box: 'fleet', q: '', scope: 'fleet', agent });
}

export function focusList(): void {
  setTimeout(() => document.querySelector<HTMLElement>('[data-list], [data-empty]')?.focus({ preventScroll: true }));
}

/** On a page: where the keys begin, so that they are never nobody's. */
export function focusPage(): void {
  setTimeout(() => { if (document.activeElement === document.body) document.querySelector<HTMLElement>('main.page')?.focus({ preventScroll: true }); });
}

export function focusItem(): void {
  setTimeout(() => document.querySelector<HTMLElement>('[data-reading]')?.focus({ preventScroll: true }));
}
