// From the page's key events to commands.
import { openItem, run } from './actions.svelte';
import { focusItem } from './navigate';
import { inWindow } from './api';
import { desk } from './desk.svelte';
import { KeyReader, takesText } from './keys';
import { ui } from './ui.svelte';

const reader = new KeyReader();
const modifiers = new Set(['Control', 'Meta', 'Alt', 'Shift', 'AltGraph']);

function onDown(e: KeyboardEvent): void {
  if (e.defaultPrevented || desk.phase !== 'ready') return;
  const target = e.target instanceof HTMLElement ? e.target : null;
  const match = reader.press(e, { typing: takesText(target), dialog: ui.overlay !== null || target?.closest('dialog[open]') !== null && target !== null }, e.timeStamp);
  if (match === null) return;
  if (match === 'pending') return e.preventDefault();
  const { id } = match.command;
  // Enter belongs to whatever control has the focus; so do the arrows inside anything that scrolls or chooses.
  if (match.key === 'Enter' && target?.closest('button, a[href], summary, input, [role="switch"]')) return;
  if (/^(Arrow|Home|End)/.test(match.key) && target?.closest('[data-reading], [data-scrolled], [role="radiogroup"], input, dialog, main.page')) return;
  if (id === 'back' && target?.closest('dialog[open]')) return; // the dialog closes itself
  if (id === 'quit' && !inWindow()) return;
  e.preventDefault();
  if (id === 'open') return ui.firstRun ? undefined : openItem();
  run(id, match.key);
  if (id === 'back' && takesText(target) && !ui.overlay && ui.pane === 'item' && document.activeElement === document.body) focusItem();
}

export function bindKeys(): () => void {
  const up = (e: KeyboardEvent) => reader.release(e.code, e.timeStamp, modifiers.has(e.key));
  const reset = () => reader.reset();
  window.addEventListener('keydown', onDown);
  window.addEventListener('keyup', up);
  window.addEventListener('blur', reset);
  return () => {
    window.removeEventListener('keydown', onDown);
    window.removeEventListener('keyup', up);
    window.removeEventListener('blur', reset);
  };
}
