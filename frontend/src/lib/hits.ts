// Where words that were looked for stand in what is shown. The page's own elements stay as they are: the marks are the
// browser's.

/** The places of words in the text below an element, in any case. */
export function places(root: HTMLElement, words: string): Range[] {
  const wanted = words.trim().toLowerCase();
  const found: Range[] = [];
  if (wanted === '') return found;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = (node.textContent ?? '').toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      found.push(range);
    }
  }
  return found;
}

/** Marks the words in each of the parts, and scrolls every part to the first of them. Without words nothing is marked. */
export function mark(parts: Iterable<HTMLElement>, words: string): void {
  const all: Range[] = [];
  for (const part of parts) {
    const hits = places(part, words);
    all.push(...hits);
    const first = hits[0]?.getBoundingClientRect();
    if (first && first.height > 0) part.scrollTop += first.top - part.getBoundingClientRect().top - part.clientHeight / 3;
  }
  if (!('highlights' in CSS)) return; // an old engine: the part is scrolled to the words all the same
  if (all.length === 0) CSS.highlights.delete('found');
  else CSS.highlights.set('found', new Highlight(...all));
}
