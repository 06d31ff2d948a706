import { beforeEach, expect, it, vi } from 'vitest';
import type * as Api from '../src/lib/api';
import type { Changed, ItemQuery } from '../src/lib/api';
import type { Detail, Row } from '../src/lib/types';

const MANY = 1000;
const rows = Array.from({ length: MANY }, (_, i) => ({ id: `m${i}`, box: 'needs' }) as Row);
let asked: string[] = [];
let failed = 0;
let tell: (c: Changed) => void = () => {};

vi.mock('../src/lib/api', async (real) => ({
  ...(await real<typeof Api>()),
  setBadge: () => undefined,
  tellWindow: () => undefined,
  listenOpen: () => undefined,
  listen: (changed: (c: Changed) => void, opened: () => void) => { tell = changed; opened(); return () => undefined; },
  api: {
    state: async () => ({ operator: 'human:maria', counts: { needs: MANY, failed } }),
    items: async (q: ItemQuery) => {
      const from = Number(q.cursor ?? 0);
      const to = Math.min(MANY, from + (q.limit ?? 100));
      return { rows: rows.slice(from, to), total: MANY, ...(to < MANY ? { next_cursor: String(to) } : {}) };
    },
    item: async (id: string) => { asked.push(id); return { id, rev: 1, box: 'needs', state: 'open', agent: 'bot', title: [], attention: 'failed' } as unknown as Detail; },
  },
}));

vi.stubGlobal('location', { hash: '', pathname: '/' });
vi.stubGlobal('document', { visibilityState: 'hidden', body: null, activeElement: null, querySelector: () => null });
vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined });

const { desk } = await import('../src/lib/desk.svelte');
const { inbox } = await import('../src/lib/inbox.svelte');
const { reader } = await import('../src/lib/reader.svelte');

beforeEach(() => { vi.useFakeTimers(); });

it('gets what changed once, however many parts of the page want it', async () => {
  const follows: string[] = [];
  desk.onItems = (ids, _whole, look) => { for (const id of ids) void look(id).then((d) => follows.push(d.id)); };
  await desk.start();
  await inbox.show({ box: 'needs' });
  inbox.want(900);
  await vi.advanceTimersByTimeAsync(1000);
  reader.open('m3');
  await vi.advanceTimersByTimeAsync(1000);
  asked = [];
  failed = 1; // one answer did not arrive
  tell({ rev: 2, items: ['m3'], topics: ['items'] });
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toEqual(['m3']);
  expect(follows).toEqual(['m3']);
  expect(reader.detail?.id).toBe('m3');
});
