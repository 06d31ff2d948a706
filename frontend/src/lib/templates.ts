// Messages that the person sends again and again. Their own are kept in this browser or window only.
import type { Priority } from './types';

export interface Template { name: string; title: string; body: string; priority: Priority; own?: boolean }

export const defaults: readonly Template[] = [
  { name: 'Hold all work', title: 'Hold all work', priority: 'high',
    body: 'Finish the step you are in, then stop. Start nothing new and change nothing outside your workspace until I write again.' },
  { name: 'Continue', title: 'Continue', priority: 'normal', body: 'Go on with what you were doing.' },
  { name: 'Report status', title: 'Report status', priority: 'normal',
    body: 'Send me a notice: what you are doing, what is done, what is left, and what you wait for.' },
];

const KEY = 'deskbell.templates';
const MOST = 20;
const priorities: readonly string[] = ['low', 'normal', 'high', 'urgent'];

/** What was stored, as far as it makes sense. */
export function readTemplates(stored: string | null): Template[] {
  let list: unknown;
  try {
    list = JSON.parse(stored ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  const own: Template[] = [];
  for (const t of list as Partial<Template>[]) {
    if (typeof t?.name !== 'string' || t.name === '' || typeof t.title !== 'string' || typeof t.body !== 'string') continue;
    if (own.some((o) => o.name === t.name)) continue;
    own.push({ name: t.name, title: t.title, body: t.body, priority: priorities.includes(t.priority ?? '') ? (t.priority as Priority) : 'normal', own: true });
  }
  return own.slice(0, MOST);
}

/** The list with one more of the person's own; one of the same name is replaced, the oldest make room. */
export function withTemplate(own: readonly Template[], t: Omit<Template, 'own'>): Template[] {
  return [...own.filter((o) => o.name !== t.name), { ...t, own: true }].slice(-MOST);
}

export function loadTemplates(): Template[] {
  try {
    return readTemplates(localStorage.getItem(KEY));
  } catch {
    return [];
  }
}

export function storeTemplates(own: readonly Template[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(own));
  } catch {
    // private mode: they last as long as the page
  }
}
