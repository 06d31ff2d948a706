import { describe, expect, it } from 'vitest';
import { above, after, anchored, reveal, slice } from '../src/lib/windowing';

const rows = (ids: string) => [...ids].map((id) => ({ id }));

describe('slice', () => {
  it('renders the viewport and a little more', () => {
    expect(slice(0, 440, 44, 10_000)).toEqual({ start: 0, end: 16 });
    expect(slice(4400, 440, 44, 10_000)).toEqual({ start: 94, end: 116 });
  });
  it('ends where the rows end, whatever the scroll position says', () => {
    expect(slice(1e9, 440, 44, 100)).toEqual({ start: 84, end: 100 });
    expect(slice(500, 440, 44, 3)).toEqual({ start: 0, end: 3 });
    expect(slice(-80, 440, 44, 3)).toEqual({ start: 0, end: 3 });
  });
  it('is empty for nothing', () => {
    expect(slice(0, 440, 44, 0)).toEqual({ start: 0, end: 0 });
    expect(slice(0, 440, 0, 10)).toEqual({ start: 0, end: 0 });
  });
  it('stays small at any size', () => {
    for (let top = 0; top < 440_000; top += 7919) {
      const { start, end } = slice(top, 900, 32, 10_000);
      expect(end - start).toBeLessThan(45);
    }
  });
});

it('reveals a row by moving as little as possible', () => {
  expect(reveal(0, 100, 440, 44)).toBe(0);
  expect(reveal(5, 0, 440, 44)).toBe(0);
  expect(reveal(10, 0, 440, 44)).toBe(44);
  expect(reveal(3, 200, 440, 44)).toBe(132);
});

describe('anchored', () => {
  it('lets new rows in at the top', () => expect(anchored(rows('bcd'), rows('abcd'), 0, 100, 10)).toBe(0));
  it('keeps what is looked at in its place', () => {
    expect(anchored(rows('abcdefgh'), rows('xyabcdefgh'), 30, 30, 10)).toBe(50);
    expect(anchored(rows('abcdefgh'), rows('bcdefgh'), 35, 30, 10)).toBe(25);
  });
  it('holds on to the next row when the first one left', () => {
    expect(anchored(rows('abcdefgh'), rows('abcefgh'), 30, 30, 10)).toBe(20); // d went: e was at 4, is at 3
  });
  it('keeps the selected row in sight, at the top by letting new rows in', () => {
    expect(anchored(rows('bcdef'), rows('abcdef'), 0, 30, 10, 'c')).toBe(0); // both can be seen
    expect(anchored(rows('bcdef'), rows('abcdef'), 0, 30, 10, 'd')).toBe(10); // it would go over the edge
    expect(anchored(rows('abcdefgh'), rows('abxcdefgh'), 10, 40, 10, 'd')).toBe(20); // c moved, b did not
    expect(anchored(rows('abcdefgh'), rows('bcdefgh'), 0, 40, 10, 'b')).toBe(0);
    expect(anchored(rows('abcdefgh'), rows('xabcdefgh'), 0, 30, 10, 'h')).toBe(0); // out of sight
  });
  it('stays when nothing is left', () => expect(anchored(rows('abcd'), rows('wxyz'), 20, 10, 10)).toBe(20));
});

it('goes on to the next row, else to the one before', () => {
  expect(after(rows('abc'), 0)?.id).toBe('b');
  expect(after(rows('abc'), 2)?.id).toBe('b');
  expect(after(rows('a'), 0)).toBeUndefined();
  expect(after(rows('abc'), -1)).toBeUndefined();
});

it('counts what is wanted and lies above the edge', () => {
  const urgent = (r: { id: string }) => r.id === r.id.toUpperCase();
  expect(above(rows('ABcd'), 0, 10, urgent)).toBe(0);
  expect(above(rows('ABcd'), 10, 10, urgent)).toBe(1);
  expect(above(rows('ABcd'), 30, 10, urgent)).toBe(2);
});
