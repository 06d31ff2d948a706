// Strings that come without spans (ids, tags, schema titles, data values): what hides in them becomes a marked span here.
import type { Span, Text } from './types';

const names: Record<number, string> = {
  0x00: 'null', 0x09: 'tab', 0x0a: 'line break', 0x0d: 'carriage return', 0x1b: 'escape', 0xad: 'soft hyphen', 0x61c: 'Arabic letter mark',
  0x200b: 'zero-width space', 0x200c: 'zero-width non-joiner', 0x200d: 'zero-width joiner', 0x200e: 'left-to-right mark', 0x200f: 'right-to-left mark',
  0x2028: 'line separator', 0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding', 0x202b: 'right-to-left embedding', 0x202c: 'end of direction',
  0x202d: 'left-to-right override', 0x202e: 'right-to-left override', 0x2060: 'word joiner', 0x2066: 'left-to-right isolate', 0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate', 0x2069: 'end of isolate', 0xfeff: 'byte order mark',
};

// What shows nothing though it counts as a letter, a mark or a symbol: the same as in backend/unseen.
const blank =
  '\\u034f\\u115f\\u1160\\u3164\\uffa0\\u17b4\\u17b5\\u2800\\u2d7f\\u303f\\ufffc\\u{13440}-\\u{13442}\\u{16fe4}\\u{1bc9d}\\u{1d159}\\u{1da9b}-\\u{1da9f}\\u{1daa1}-\\u{1daaf}';
// eslint-disable-next-line no-misleading-character-class -- each of them alone is meant
const hidden = new RegExp(`[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cs}\\p{Cn}\\p{Default_Ignorable_Code_Point}${blank}]`, 'u');
const mark = /\p{M}/u;
const stacked = /\p{M}{5}/u; // a letter carries at most four, as in backend/render
const emojiStyle = /[\ufe0e\ufe0f]/;
const pictograph = /\p{Extended_Pictographic}|[\d#*]/u;
const joiner = /[\u200c\u200d]/;
const ascii = /[\u0000-\u007f]/; // eslint-disable-line no-control-regex

/** The text as spans. With `lines`, line breaks and tabs stay what they are. Joiners inside words of their scripts and in emoji stay too. */
export function visible(s: string, lines = false): Text {
  if (!hidden.test(s) && !stacked.test(s)) return s === '' ? [] : [{ t: s }];
  const out: Span[] = [];
  let run = '';
  const chars = [...s];
  let stack = 0;
  chars.forEach((c, i) => {
    stack = mark.test(c) ? stack + 1 : 0;
    const before = chars[i - 1];
    const next = chars[i + 1];
    const joins = joiner.test(c) && before !== undefined && next !== undefined && !ascii.test(before) && !ascii.test(next);
    const fits = joins || (emojiStyle.test(c) && before !== undefined && pictograph.test(before));
    if ((!hidden.test(c) && stack <= 4) || fits || (lines && (c === '\n' || c === '\t'))) {
      run += c;
      return;
    }
    if (run) out.push({ t: run });
    run = '';
    const code = c.codePointAt(0) ?? 0;
    const point = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
    out.push({ t: names[code] ?? point, m: `${point}: ${names[code] ?? (hidden.test(c) ? 'a character that does not show' : 'one combining mark too many')}` });
  });
  if (run) out.push({ t: run });
  return out;
}
