// How the item on show is decided: its choices, its editors, and what must have been seen before.
import { flushSync } from 'svelte';
import { optionName } from './apart';
import { decisions } from './decide.svelte';
import { drafts, type Editor } from './drafts.svelte';
import { plural } from './format';
import { focusField } from './formfocus';
import { inbox } from './inbox.svelte';
import { asksLeave } from './itemwords';
import { focusItem, focusList } from './navigate';
import { reader } from './reader.svelte';
import { rules } from './rules.svelte';
import { bring, inSight, unseen, type Unread } from './sight';
import type { Detail, Option } from './types';
import { isBox, ui } from './ui.svelte';

/** The answer to a call that allows it with other arguments. */
const ALLOW_EDITED = 'allow_edited';

/** What may be answered to a call for longer than once. */
export const offers = (d: Detail, verdict: string) => (d.rule_offers ?? []).filter((o) => o.verdict === verdict);

/** The choices as their number keys see them. In a task the numbers tick its steps. */
export function choices(d: Detail): Option[] {
  if (!d.request || d.request.mode === 'input' || !d.request.allow_respond) return [];
  if (d.request.options?.length) return d.request.options;
  if (d.request.mode !== 'confirm') return [];
  return [{ value: 'approve', label: [{ t: 'Approve' }] }, { value: 'deny', label: [{ t: 'Deny' }] }];
}

export function choose(d: Detail, option: Option): void {
  if (asksLeave(d) && option.value === ALLOW_EDITED) return edit('arguments');
  if (d.ask && option.value !== 'deny' && !wasRead(d)) return;
  const name = optionName(option, choices(d));
  const leave = asksLeave(d) && { deny: 'Denied', allow: 'Allowed' }[option.value];
  void decisions.send(d.id, { resolution: 'answered', value: option.value }, leave || `Answered “${name}”`, leave ? undefined : name);
}

/** Chooses by its number what is to be seen, once it was there for long enough to be meant. */
export function chooseByKey(n: number): void {
  const d = reader.detail;
  if (!shown()) return;
  if (!d || !reader.armed) return ui.hint('This one only just came up. Press again to answer it.');
  if (!reader.ready) return;
  const option = choices(d)[n - 1];
  if (!option && !d.action) return;
  if (!seen(n, option ? `answer “${optionName(option, choices(d))}”` : 'tick it')) return;
  if (option) choose(d, option);
  else if (decisions.sender?.id === d.id) decisions.sender.tick?.(n);
}

/** A call or a process is allowed only after what will run, and what is risky about it, was in sight to its end, or the
 *  person was told how much was not: else it is brought there, and the next press counts. */
export function wasRead(d: Detail): boolean {
  const reading = reader.detail?.id === d.id ? document.querySelector('[data-item-pane] [data-reading]') : null;
  if (!reading) return false;
  const parts = unseen(reading);
  if (parts.length === 0) return true;
  const left = bring(reading, parts);
  ui.hint(left ? unreadWords(left) : 'Read what will run first, then press again.');
  return false;
}

function unreadWords({ lines, absent }: Unread): string {
  const says: string[] = [];
  if (lines > 0) says.push(`${plural(lines, 'line')} of it ${lines === 1 ? 'was' : 'were'} not on screen yet`);
  if (absent.length > 0) says.push(`${absent.join(' and ')} of it ${absent.length === 1 && absent[0]?.startsWith('1 ') ? 'is' : 'are'} not shown here`);
  return `${says.join(', and ')}. ${lines > 0 ? 'Read on, or press' : 'Press'} again to allow ${lines === 1 && absent.length === 0 ? 'it' : 'them'} unread.`;
}

/** Asks how long a verdict on a call shall hold. */
export function askLonger(d: Detail, verdict: 'allow' | 'deny'): void {
  if (verdict === 'deny' || wasRead(d)) rules.ask(d, verdict);
}

/** A key means only what the person sees: what is out of sight is brought into it first, and waits for the next press. */
function seen(n: number, does: string): boolean {
  const row = document.querySelectorAll('[data-decision] [data-choice]')[n - 1];
  if (!row) {
    if (drafts.of(inbox.selectedId ?? '').editor !== null) ui.hint('The choices are not shown while you write. Esc brings them back.');
    return false;
  }
  if (inSight(row)) return true;
  row.scrollIntoView({ block: 'nearest' });
  ui.hint(`That was out of sight. Press ${n} again to ${does}.`);
  return false;
}

/** In a narrow window the item may be behind the list: then nothing about it is decided by key. */
function shown(): boolean {
  return isBox(ui.view) && ui.overlay === null && document.querySelector('[data-item-pane]')?.checkVisibility() === true;
}

/** A call is denied rather than declined: the agent is told no. */
const denies = (d: Detail): boolean => asksLeave(d) && choices(d).some((o) => o.value === 'deny');

/** Whether what the selected item asks for has this editor. */
export function canEdit(d: Detail, editor: Editor): boolean {
  if (!d.answerable.ok || d.state !== 'open' || d.held_decision) return false;
  if (editor === 'answer') return d.request !== undefined && d.request.mode !== 'input' && d.request.allow_edit && d.request.allow_respond;
  if (editor === 'arguments' || editor === 'review') return asksLeave(d) && choices(d).some((o) => o.value === ALLOW_EDITED);
  if (editor === 'comment' && d.request?.no_comment) return false;
  if (editor === 'decline') return d.action !== undefined || d.request?.allow_ignore === true || denies(d);
  return d.kind !== 'notice';
}

/** Into the form of the item on show, if it has one. */
export function fill(): boolean {
  if (!focusField()) return false;
  ui.pane = 'item';
  return true;
}

/** Where the focus was when the editor was opened. */
let cameTo: 'list' | 'item' = 'item';

/** Closes the editor of the item and brings the focus back to where it was. */
export function closeEditor(id: string): void {
  drafts.of(id).editor = null;
  ui.pane = cameTo;
  if (cameTo === 'list') focusList();
  else focusItem();
}

export function edit(editor: Editor): void {
  const d = reader.detail;
  if (editor === 'answer' && d?.request?.mode === 'input' && reader.ready && shown()) { fill(); return; }
  if (editor === 'answer' && d && asksLeave(d)) return edit('arguments');
  if (!d || !reader.armed || !shown() || !canEdit(d, editor)) return;
  const draft = drafts.of(d.id);
  draft.grab = true;
  cameTo = document.activeElement?.closest('[data-list]') ? 'list' : 'item';
  if (draft.editor === editor) setTimeout(() => document.querySelector<HTMLElement>('[data-decision] textarea')?.focus());
  draft.editor = editor;
  ui.pane = 'item';
  flushSync(); // the next key must already land in the editor
}

export function decline(d: Detail): void {
  if (denies(d)) return void decisions.send(d.id, { resolution: 'answered', value: 'deny' }, 'Denied');
  const task = d.action !== undefined;
  void decisions.send(d.id, { resolution: task ? 'dismissed' : 'declined' }, task ? 'Dismissed' : 'Declined');
}

/** Allowing a call: how long it shall hold is asked where there is a choice, and pressed again where there is none. */
export function allow(): void {
  const d = reader.detail;
  if (!d || !asksLeave(d) || !shown()) return;
  if (!reader.armed) return ui.hint('This one only just came up. Press again to answer it.');
  if (reader.ready && choices(d).some((o) => o.value === 'allow')) askLonger(d, 'allow');
}
