// JSON whose numbers keep their digits. JavaScript's own reader rounds those beyond 2^53, so that two options could read
// the same and another than the chosen one be sent. Such a number is an object here that prints its digits.
import { compareNumber, isLosslessNumber, LosslessNumber, parse, splitNumber, stringify } from 'lossless-json';

/** A number as it is read here. `String` writes it with all its digits; it is not to be counted or compared as it is. */
export type Exact = number | LosslessNumber;

/** Where a text has no number that long, the browser's own reader is as exact and faster. */
const long = /[\d.]{16}|\d[eE]/;

/** Reads JSON. Throws a SyntaxError when it is none. */
export function readJSON(text: string): unknown {
  if (!long.test(text)) return JSON.parse(text) as unknown;
  return parse(text, null, { parseNumber: exactNumber });
}

/** The number that a text of JSON spells, with all its digits. */
export function exactNumber(digits: string): Exact {
  const n = Number(digits);
  const significant = digits.replace(/[eE].*$/, '').replace('.', '').replace(/^-?0*/, '').length;
  // those that are too small for all of a number's digits lose some of them, or all
  const held = n === 0 ? significant === 0 : Number.isFinite(n) && Math.abs(n) > 2.3e-308;
  return held && (significant <= 15 || String(n) === digits) ? n : new LosslessNumber(digits);
}

/** Writes JSON; a number that was read here is written as it was. */
export function writeJSON(value: unknown, indent?: number): string {
  return stringify(value, null, indent) ?? 'null';
}

/** A value without parts: a number that is an object here is one all the same. */
export function isNumber(value: unknown): value is Exact {
  return typeof value === 'number' || isLosslessNumber(value);
}

/** Which of two is larger, by all their digits: below 0, 0 or above 0, as a comparison gives it. */
export function compare(a: Exact, b: Exact): number {
  return compareNumber(String(a), String(b));
}

/** Whether nothing of it is behind the point, however it is written: 1.0 and 1e3 are whole. */
export function isWhole(n: Exact): boolean {
  const { digits, exponent } = splitNumber(String(n));
  return digits.length <= exponent + 1 || digits === '0';
}

/** How far apart the sizes of two numbers may be for their digits to be written out. */
const MAX_SCALE = 2000;

/** Whether `n` is a multiple of `of`, by all their digits; null where they are too far apart to say. */
export function isMultiple(n: Exact, of: Exact): boolean | null {
  const [a, b] = [splitNumber(String(n)), splitNumber(String(of))];
  const [low, high] = [a.exponent - a.digits.length, b.exponent - b.digits.length].sort((x, y) => x - y) as [number, number];
  if (b.digits === '0' || high - low > MAX_SCALE) return null;
  const scaled = (s: typeof a) => BigInt(s.digits) * 10n ** BigInt(s.exponent - s.digits.length - low);
  return scaled(a) % scaled(b) === 0n;
}
