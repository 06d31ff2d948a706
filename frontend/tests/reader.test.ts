import { beforeEach, expect, it, vi } from 'vitest';
import type * as Api from '../src/lib/api';
import type { Detail } from '../src/lib/types';

let now: Detail;

vi.mock('../src/lib/api', async (real) => ({
  ...(await real<typeof Api>()),
  api: { item: async () => now },
}));
vi.stubGlobal('document', { visibilityState: 'hidden', body: null, activeElement: null, querySelector: () => null });
vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined });

const { reader } = await import('../src/lib/reader.svelte');

const open = { id: 'm1', rev: 1, state: 'open', box: 'needs', agent: 'bot', title: [], unread: true } as unknown as Detail;

beforeEach(async () => {
  reader.open(null);
  now = open;
  reader.open('m1');
  await vi.waitFor(() => expect(reader.detail).toEqual(open));
});

it('takes a mark of what is on show, and of nothing else or older', () => {
  reader.marked({ ...open, rev: 2, unread: false });
  expect(reader.detail?.unread).toBe(false);
  reader.marked({ ...open, unread: true });
  reader.marked({ ...open, id: 'm2', rev: 9, unread: true });
  expect(reader.detail).toMatchObject({ id: 'm1', rev: 2, unread: false });
});

it('says that an item ended also where a mark is the first to know', async () => {
  now = { ...open, rev: 3, state: 'cancelled', unread: false };
  reader.marked({ ...open, rev: 3, state: 'cancelled', unread: false });
  await vi.waitFor(() => expect(reader.detail?.state).toBe('cancelled'));
  expect(reader.ended).toBe('m1');
});
