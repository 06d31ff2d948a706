// Whether something is on screen, as the boxes around it that scroll let it be seen.

import { plural } from './format';

/** Less room than this shows nothing that could be read. */
const ROOM = 32;

/** True when nothing of `el` is cut off; of what is higher than its box, when it begins there and fills most of it. */
export function inSight(el: Element): boolean {
  const is = el.getBoundingClientRect();
  let top = 0;
  let bottom = innerHeight;
  for (let box = el.parentElement; box !== null && box !== document.body; box = box.parentElement) {
    if (!/auto|scroll|hidden|clip/.test(getComputedStyle(box).overflowY)) continue;
    const edge = box.getBoundingClientRect();
    top = Math.max(top, edge.top);
    bottom = Math.min(bottom, edge.bottom);
  }
  if (is.height === 0 || is.top < top - 1) return false;
  return is.bottom <= bottom + 1 || (is.height > bottom - top && bottom - top >= ROOM && bottom - is.top >= 0.6 * (bottom - top));
}

/** How far each of what must be read was read without a gap, in pixels from its own beginning. */
const reached = new WeakMap<Element, number>();
/** What was said to be unread, and so may be decided without. */
const told = new WeakSet<Element>();

/** How much may stay below the edge: less than a line. */
const EDGE = 8;

/** Where the content of `el` that is in sight begins and ends, in pixels from its own beginning. */
function shownPart(el: Element): { from: number; to: number } {
  const is = el.getBoundingClientRect();
  let top = Math.max(0, is.top);
  let bottom = Math.min(innerHeight, is.bottom);
  for (let box = el.parentElement; box !== null && box !== document.body; box = box.parentElement) {
    if (!/auto|scroll|hidden|clip/.test(getComputedStyle(box).overflowY)) continue;
    const edge = box.getBoundingClientRect();
    top = Math.max(top, edge.top);
    bottom = Math.min(bottom, edge.bottom);
  }
  return { from: top - is.top + el.scrollTop, to: bottom - is.top + el.scrollTop };
}

/** Whether enough of `el` is in sight to read it. */
function legible(el: Element): boolean {
  const { from, to } = shownPart(el);
  return to - from >= Math.min(ROOM, el.clientHeight) - EDGE;
}

function note(el: Element): void {
  const { from, to } = shownPart(el);
  const before = reached.get(el) ?? 0;
  if (legible(el) && from <= before + EDGE && to > before) reached.set(el, to);
}

/** Attached to what must be read before it is decided: keeps in mind how much of it was ever in sight. */
export function mustBeSeen(el: HTMLElement): () => void {
  el.dataset['look'] = '';
  const look = () => note(el);
  const watcher = new IntersectionObserver(look, { threshold: steps });
  watcher.observe(el);
  document.addEventListener('scroll', look, { capture: true, passive: true }); // its own, and that of what is around it
  return () => {
    watcher.disconnect();
    document.removeEventListener('scroll', look, { capture: true });
  };
}

const steps = Array.from({ length: 21 }, (_, i) => i / 20);

const lineHeight = (el: Element): number => parseFloat(getComputedStyle(el).lineHeight) || 20;

/** How many lines of `el` are below what its own frame shows now. */
export const linesBelow = (el: Element): number => Math.max(0, Math.round((el.scrollHeight - el.scrollTop - el.clientHeight - EDGE) / lineHeight(el)));

/** What must be read inside `where` and was not to its end, nor said to be so. What the page has only a part of never is. */
export function unseen(where: Element): HTMLElement[] {
  return [...where.querySelectorAll<HTMLElement>('[data-look]')].filter((el) => {
    note(el);
    return !told.has(el) && (toRead(el) > 0 || absent(el).length > 0);
  });
}

/** What of `el` is not in the page, and what is folded in it. */
function absent(el: HTMLElement): string[] {
  const folded = el.querySelectorAll('[data-folded]').length;
  return [el.dataset['left'] ?? '', folded > 0 ? plural(folded, 'folded part') : ''].filter(Boolean);
}

/** How much of `el` was never read, in pixels. */
function toRead(el: Element): number {
  const left = el.scrollHeight - (reached.get(el) ?? 0);
  return left < EDGE ? 0 : left;
}

/** What of all of a decision was not read: lines that were not on screen, and what is not in the page or folded. */
export interface Unread { lines: number; absent: string[] }

/** Brings into sight what of `where` was not, what is risky of it first. Says how much of it all was unread: after that it may
 *  be decided without. Nothing, where all of it is in sight now, or where what it does must be begun to be read first. */
export function bring(where: Element, all: readonly HTMLElement[]): Unread | undefined {
  const begun = [...where.querySelectorAll('[data-look]:not([data-hint])')].some((el) => (reached.get(el) ?? 0) > 0);
  const unread = { lines: all.reduce((n, el) => n + (toRead(el) > 0 ? Math.max(1, Math.round(toRead(el) / lineHeight(el))) : 0), 0), absent: all.flatMap(absent) };
  const el = (begun && all.find((e) => e.matches('[data-hint]') || riskIn(e))) || all.find((e) => toRead(e) > 0) || all[0];
  if (!el) return undefined;
  if (toRead(el) > 0) show(el);
  for (const e of all) note(e);
  const left = all.filter((e) => toRead(e) > 0 || absent(e).length > 0);
  if (!begun || !legible(el) || left.length === 0) return undefined;
  for (const e of left) told.add(e);
  return unread;
}

const place = (of: Element, el: Element): number => of.getBoundingClientRect().top - el.getBoundingClientRect().top + el.scrollTop;

/** What is marked as risky in what of `el` was not read. */
const riskIn = (el: Element): Element | undefined => [...el.querySelectorAll('mark')].find((m) => place(m, el) > (reached.get(el) ?? 0) - EDGE);

/** Scrolls to where the reading of `el` goes on, or to what is risky after that. */
function show(el: Element): void {
  const read = reached.get(el) ?? 0;
  const risk = riskIn(el);
  if (read === 0 || el.scrollHeight > el.clientHeight + EDGE) el.scrollIntoView({ block: 'start' });
  else (risk ?? el).scrollIntoView({ block: risk ? 'start' : 'end' });
  if (read > 0) el.scrollTop = (risk ? place(risk, el) : read) - lineHeight(el);
  risk?.scrollIntoView({ block: 'nearest' }); // a frame that scrolled to its end has it at its lower edge, which may be out of sight
}
