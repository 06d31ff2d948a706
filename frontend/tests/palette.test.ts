import { describe, expect, it, vi } from 'vitest';

vi.mock('../src/lib/reader.svelte', () => ({ reader: {} }));
vi.mock('../src/lib/inbox.svelte', () => ({ inbox: {} }));

import { named, ranked, score } from '../src/lib/palette';

describe('palette', () => {
  it('tells the archive from putting something there', () => {
    const labels = ranked('archive', []).map((h) => h.command && named(h.command));
    expect(labels).toContain('Archive this item');
    expect(labels).toContain('Go to Archive');
  });
  it('wants every word', () => {
    expect(score('Go to Needs you', 'needs go')).not.toBeNull();
    expect(score('Go to Needs you', 'needs agents')).toBeNull();
  });
  it('offers commands for nothing typed, and never a number', () => {
    const hits = ranked('', []);
    expect(hits.length).toBeGreaterThan(10);
    expect(hits.some((h) => h.command?.id === 'choose')).toBe(false);
  });
});
