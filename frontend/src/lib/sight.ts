// Whether something is wholly on screen, as the boxes around it that scroll let it be seen.

/** True when nothing of `el` is cut off; of what is higher than its box, when it begins at the box's top. */
export function inSight(el: Element): boolean {
  const is = el.getBoundingClientRect();
  for (let box = el.parentElement; box !== null; box = box.parentElement) {
    if (box !== document.documentElement && !/auto|scroll|hidden|clip/.test(getComputedStyle(box).overflowY)) continue;
    const root = box === document.documentElement || box === document.body;
    const top = root ? 0 : box.getBoundingClientRect().top;
    const bottom = root ? innerHeight : box.getBoundingClientRect().bottom;
    if (is.top < top - 1 || (is.bottom > bottom + 1 && is.height <= bottom - top)) return false;
  }
  return true;
}
