// No link ever takes this page away: each is opened outside, if it is one that may be.
import { openExternal } from './api';
import { ui } from './ui.svelte';

const allowed = new Set(['http:', 'https:', 'mailto:']);

function onClick(e: MouseEvent): void {
  const link = (e.target as Element | null)?.closest?.('a[href], area[href]');
  if (!link) return;
  e.preventDefault();
  if (e.type === 'auxclick' && e.button !== 1) return;
  const href = link.getAttribute('href') ?? '';
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return; // relative: it would lead into this page
  }
  if (allowed.has(url.protocol)) openExternal(url.href);
  else ui.toast(`A ${url.protocol.replace(':', '')} link is not opened from here.`);
}

export function guardLinks(): () => void {
  const stop = (e: DragEvent) => { if (e.dataTransfer?.types.some((t) => t === 'Files' || t === 'text/uri-list')) e.preventDefault(); };
  document.addEventListener('click', onClick, true);
  document.addEventListener('auxclick', onClick, true);
  document.addEventListener('dragover', stop);
  document.addEventListener('drop', stop);
  return () => {
    document.removeEventListener('click', onClick, true);
    document.removeEventListener('auxclick', onClick, true);
    document.removeEventListener('dragover', stop);
    document.removeEventListener('drop', stop);
  };
}
