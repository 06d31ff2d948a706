import { beforeEach, describe, expect, it, vi } from 'vitest';
import type * as Api from '../src/lib/api';
import type { PiRow, PiSession } from '../src/lib/pitypes';

let down = false;
const away = vi.fn();
const rows = [{ n: 41 }, { n: 42 }] as PiRow[];

vi.mock('../src/lib/desk.svelte', () => ({ desk: { noticed: away } }));
vi.mock('../src/lib/api', async (real) => {
  const { Unreachable, ...rest } = await real<typeof Api>();
  const or = <T>(value: T) => () => (down ? Promise.reject(new Unreachable()) : Promise.resolve(value));
  return {
    ...rest, Unreachable,
    api: {
      piSessions: or({ sessions: [{ id: 's1', last_seen: 5 }] as PiSession[], next_before: 5 }),
      piSession: or({ session: { rows: 42 }, info: {}, asks: [], quiet_ms: 0 }),
      piRows: or({ rows, rev: 1, more: false }),
    },
  };
});

const { piList, Transcript } = await import('../src/lib/pi.svelte');
const gone = 'The hub does not answer. What is shown may be old.';

describe('what is asked for of a session of pi and does not come', () => {
  beforeEach(() => { down = false; away.mockClear(); });

  it('is said of older sessions, and no more once they come', async () => {
    await piList.load();
    down = true;
    await piList.more();
    expect(piList.problem).toBe(gone);
    expect(away).toHaveBeenCalledOnce();
    down = false;
    await piList.more();
    expect(piList.problem).toBe('');
  });

  it.each([
    ['older rows', (t: InstanceType<typeof Transcript>) => t.older()],
    ['the newest rows', (t: InstanceType<typeof Transcript>) => t.toNewest()],
    ['the rows around a place', (t: InstanceType<typeof Transcript>) => t.at(3)],
    ['a search', (t: InstanceType<typeof Transcript>) => t.search('ls')],
    ['the place of a call', (t: InstanceType<typeof Transcript>) => t.placeOf('c1')],
  ])('is said of %s, and what is shown stays', async (_what, ask) => {
    const t = new Transcript('s1');
    await t.changed();
    expect(t.problem).toBe('');
    down = true;
    await ask(t);
    expect(t.problem).toBe(gone);
    expect(away).toHaveBeenCalledOnce();
    expect(t.rows).toEqual(rows);
    down = false;
    await ask(t);
    expect(t.problem).toBe('');
  });
});
