// Which rows of a list of equally high rows are on screen, and where to scroll. Pure arithmetic, no DOM.

export interface Slice { start: number; end: number }

/** The rows to render for a viewport, `overscan` more on both sides. `end` is exclusive. */
export function slice(scrollTop: number, viewport: number, rowHeight: number, total: number, overscan = 6): Slice {
  if (total === 0 || rowHeight <= 0) return { start: 0, end: 0 };
  const top = Math.max(0, Math.min(scrollTop, total * rowHeight - viewport));
  const start = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const end = Math.min(total, Math.ceil((top + viewport) / rowHeight) + overscan);
  return { start, end: Math.max(start, end) };
}

/** The scroll position that shows row `index` wholly, moving as little as possible. */
export function reveal(index: number, scrollTop: number, viewport: number, rowHeight: number): number {
  const top = index * rowHeight;
  if (top < scrollTop) return top;
  if (top + rowHeight > scrollTop + viewport) return Math.max(0, top + rowHeight - viewport);
  return scrollTop;
}

/**
 * The scroll position after the rows changed, so that what the person looks at stays where it is.
 * At the very top new rows are let in, unless that would push the selected row out of sight. Further down the selected row
 * keeps its place when it is in sight, else the first visible row that still exists.
 */
export function anchored(
  before: readonly { id: string }[], after: readonly { id: string }[], scrollTop: number, viewport: number, rowHeight: number,
  selected: string | null = null,
): number {
  if (before.length === 0) return scrollTop;
  const first = Math.floor(scrollTop / rowHeight);
  const last = Math.min(before.length, Math.ceil((scrollTop + viewport) / rowHeight));
  const visible = new Map<string, number>();
  for (let i = first; i < last; i++) {
    const row = before[i];
    if (row) visible.set(row.id, i);
  }
  const was = selected === null ? undefined : visible.get(selected);
  const is = was === undefined ? -1 : after.findIndex((r) => r.id === selected);
  if (scrollTop <= 0 && (was === undefined || is < 0 || (is + 1) * rowHeight <= viewport)) return scrollTop;
  if (was !== undefined && is >= 0) return Math.max(0, scrollTop + (is - was) * rowHeight);
  let best: { was: number; is: number } | undefined;
  for (let i = 0; i < after.length; i++) {
    const was = visible.get(after[i]?.id ?? '');
    if (was !== undefined && (best === undefined || was < best.was)) best = { was, is: i };
  }
  return best === undefined ? scrollTop : Math.max(0, scrollTop + (best.is - best.was) * rowHeight);
}

/** The row to go to when the row at `index` is decided: the next one, else the one before, else none. */
export function after<T>(rows: readonly T[], index: number): T | undefined {
  return index < 0 ? undefined : (rows[index + 1] ?? rows[index - 1]);
}

/** How many of the first rows that are `wanted` lie wholly above the scroll position. They come first, so counting ends at the first other one. */
export function above<T>(rows: readonly T[], scrollTop: number, rowHeight: number, wanted: (row: T) => boolean): number {
  const end = Math.min(rows.length, Math.floor((scrollTop + rowHeight / 2) / rowHeight));
  let n = 0;
  while (n < end && wanted(rows[n] as T)) n++;
  return n;
}
