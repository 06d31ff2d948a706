// Whether something is on screen, as the boxes around it that scroll let it be seen.

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

const seen = new WeakSet<Element>();
const steps = Array.from({ length: 21 }, (_, i) => i / 20);

/** Attached to what must be read before it is decided: keeps in mind whether it was ever in sight. */
export function mustBeSeen(el: HTMLElement): () => void {
  el.dataset['look'] = '';
  const note = () => { if (inSight(el)) seen.add(el); };
  const watcher = new IntersectionObserver(note, { threshold: steps });
  watcher.observe(el);
  return () => watcher.disconnect();
}

/** The first of what must be read inside `where` that was never in sight. */
export function unseen(where: Element): Element | undefined {
  return [...where.querySelectorAll('[data-look]')].find((el) => !seen.has(el) && !inSight(el));
}
