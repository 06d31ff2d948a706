import { describe, expect, it } from 'vitest';
import { visible } from '../src/lib/visible';

const show = (s: string, lines = false) => visible(s, lines).map((x) => (x.m ? `[${x.t}]` : x.t)).join('');

describe('visible', () => {
  it('leaves honest text alone', () => {
    for (const s of ['plain', 'é ü 漢字', 'هل ننشر', '👩‍💻', 'नमस्ते', 'می‌خواهم', '❤️', '1️⃣', 'Việt']) expect(show(s)).toBe(s);
    expect(visible('')).toEqual([]);
  });
  it('names what hides', () => {
    expect(show('a\u202Eb')).toBe('a[right-to-left override]b');
    expect(show('pass\u200bword')).toBe('pass[zero-width space]word');
    expect(show('a\u200db')).toBe('a[zero-width joiner]b');
    expect(show('x\u{E0041}y')).toBe('x[U+E0041]y');
    for (const c of ['\ufe0f', '\u{e0100}', '\u{e0fff}', '\u2065', '\u034f', '\u0378', '\ufff0', '\u2800', '\u{1d159}', '\u{16fe4}', '\u{13441}', '\u{13442}']) expect(show(`a${c}b`)).toMatch(/^a\[U\+[0-9A-F]+\]b$/);
    expect(show(`a${'\u0301'.repeat(6)}`)).toBe(`a${'\u0301'.repeat(4)}[U+0301][U+0301]`);
    expect(show('\u001b[31m')).toBe('[escape][31m');
    expect(visible('\u202E')[0]?.m).toBe('U+202E: right-to-left override');
  });
  it('keeps lines where lines may be', () => {
    expect(show('a\nb\tc', true)).toBe('a\nb\tc');
    expect(show('a\nb')).toBe('a[line break]b');
    expect(show('a\rb', true)).toBe('a[carriage return]b');
  });
});
