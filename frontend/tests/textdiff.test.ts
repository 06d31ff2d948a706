import { describe, expect, it } from 'vitest';
import { changeWords, diffWords, lines, textDiff } from '../src/lib/textdiff';
import { visible } from '../src/lib/visible';

const diff = (from: string, to: string) => textDiff(visible(from, true), visible(to, true));
const shown = (from: string, to: string) => diff(from, to).map((l) => l.op + l.text.map((s) => s.t).join(''));
/** What is left when the other side's lines are taken away. */
const side = (d: ReturnType<typeof diff>, op: '+' | '-') => d.filter((l) => l.op !== op).map((l) => l.text.map((s) => s.t).join('')).join('\n');

describe('textDiff', () => {
  it('says that equal texts are equal', () => {
    expect(shown('a\nb', 'a\nb')).toEqual([' a', ' b']);
    expect(diffWords(diff('a', 'a'))).toBe('nothing changed');
  });
  it('keeps what both have', () => {
    expect(shown('a\nb\nc\nd', 'a\nx\nc\ny\nd')).toEqual([' a', '-b', '+x', ' c', '+y', ' d']);
  });
  it('numbers the lines of both sides', () => {
    expect(diff('a\nb\nc', 'a\nc\nd').map((l) => [l.op, l.old, l.new])).toEqual([[' ', 1, 1], ['-', 2, undefined], [' ', 3, 2], ['+', undefined, 3]]);
  });
  it('sees a difference that does not show', () => {
    expect(shown('rm a', 'rm\u200b a')[0]).toBe('-rm a');
    expect(diff('rm a', 'rm\u200b a').filter((l) => l.op === ' ')).toEqual([]);
  });
  it('knows a label from the text that it looks like', () => {
    expect(textDiff([{ t: 'tab', m: 'U+0009: tab' }], [{ t: 'tab' }]).map((l) => l.op)).toEqual(['-', '+']);
  });
  it('gives both sides back whole, whatever they are', () => {
    let seed = 7;
    const random = (n: number) => { seed = (seed * 16807) % 2147483647; return seed % n; };
    for (let i = 0; i < 200; i++) {
      const text = () => Array.from({ length: random(9) }, () => 'abc'[random(3)]).join('\n');
      const [from, to] = [text(), text()];
      const d = diff(from, to);
      expect(side(d, '+')).toBe(from);
      expect(side(d, '-')).toBe(to);
    }
  });
  it('does not stand still over a huge text', () => {
    const from = Array.from({ length: 5000 }, (_, i) => `from ${i}`).join('\n');
    const to = Array.from({ length: 5000 }, (_, i) => `to ${i}`).join('\n');
    const began = performance.now();
    const d = diff(from, to);
    expect(performance.now() - began).toBeLessThan(1000);
    expect(diffWords(d)).toBe('5,000 lines added, 5,000 removed');
  });
});

it('cuts a text at its line breaks, marked stretches left whole', () => {
  expect(lines([{ t: 'a\nb' }, { t: 'escape', m: 'U+001B: escape' }, { t: '\n' }])).toEqual([[{ t: 'a' }], [{ t: 'b' }, { t: 'escape', m: 'U+001B: escape' }], []]);
});

it('says how much changed, also where not all of it is shown', () => {
  expect(changeWords(1, 5000)).toBe('1 line added, 5,000 removed');
  expect(changeWords(0, 0, 'deletes the file')).toBe('deletes the file');
  expect(changeWords(2, 0, 'new file')).toBe('new file: 2 lines added');
  expect(changeWords(0, 0)).toBe('nothing changed');
});
