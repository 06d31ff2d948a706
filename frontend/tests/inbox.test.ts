import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ItemQuery } from '../src/lib/api';
import type { Row } from '../src/lib/types';

const ALL = 3000;
const all = Array.from({ length: ALL }, (_, i) => ({ id: `m${i}`, box: 'needs' }) as Row);
let calls: number[] = [];
let meanwhile: () => void = () => {};

vi.mock('../src/lib/api', () => ({
  Refused: class extends Error {},
  api: {
    items: async (q: ItemQuery) => {
      const from = Number(q.cursor ?? 0);
      const to = Math.min(ALL, from + (q.limit ?? 100));
      calls.push(from);
      await Promise.resolve();
      meanwhile();
      return { rows: all.slice(from, to), total: ALL, ...(to < ALL ? { next_cursor: String(to) } : {}) };
    },
  },
}));

const { Inbox } = await import('../src/lib/inbox.svelte');

describe('the whole list', () => {
  beforeEach(() => { calls = []; meanwhile = () => {}; });

  it('is there to its last row, whatever is on screen', async () => {
    const inbox = new Inbox();
    await inbox.show({ box: 'needs' });
    inbox.want(20);
    meanwhile = () => inbox.want(20); // the list on screen asks for its own few rows again and again
    expect(await inbox.whole()).toBe(true);
    expect(inbox.rows.length).toBe(ALL);
    expect(inbox.rows.at(-1)?.id).toBe(`m${ALL - 1}`);
  });

  it('is there although it is loaded anew meanwhile', async () => {
    const inbox = new Inbox();
    await inbox.show({ box: 'needs' });
    let again = 2;
    meanwhile = () => { if (inbox.rows.length > 500 && again-- > 0) void inbox.reload(); };
    expect(await inbox.whole()).toBe(true);
    expect(inbox.rows.length).toBe(ALL);
    expect(new Set(inbox.rows.map((r) => r.id)).size).toBe(ALL);
  });

  it('is given up when something else is asked for', async () => {
    const inbox = new Inbox();
    await inbox.show({ box: 'needs' });
    const whole = inbox.whole();
    void inbox.show({ q: 'x' });
    expect(await whole).toBe(false);
  });
});

describe('a row that is told anew', () => {
  it('keeps what it says, and nothing of what the item holds besides', async () => {
    const inbox = new Inbox();
    await inbox.show({ box: 'needs' });
    inbox.patch({ id: 'm3', box: 'needs', starred: true, verdict: 'deny', progress: { part: 0.4 }, body_html: '<p>long</p>' } as unknown as Row);
    expect(inbox.rows[3]).toEqual({ id: 'm3', box: 'needs', starred: true, verdict: 'deny', progress: { part: 0.4 } });
  });
});
