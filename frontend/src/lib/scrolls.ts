// What is cut off must be reachable by key: a box takes the focus exactly while it has more than it shows.

/** An attachment. The arrows scroll what has the focus through it (lib/keyboard.ts). */
export function scrolls(el: HTMLElement): () => void {
  const look = () => {
    if (el.scrollHeight > el.clientHeight + 1 || el.scrollWidth > el.clientWidth + 1) {
      el.tabIndex = 0;
      el.dataset['scrolled'] = '';
    } else if (document.activeElement !== el) {
      el.removeAttribute('tabindex');
      delete el.dataset['scrolled'];
    }
  };
  const watch = new ResizeObserver(look);
  watch.observe(el);
  return () => watch.disconnect();
}
