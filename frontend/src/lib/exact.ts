// JSON whose numbers keep their digits. JavaScript's own reader rounds those beyond 2^53, so that two options could read
// the same and another than the chosen one be sent. Such a number is an object here that prints its digits.
import { isLosslessNumber, LosslessNumber, parse, stringify } from 'lossless-json';

/** Where a text has no number that long, the browser's own reader is as exact and faster. */
const long = /[\d.]{16}|\d[eE]/;

/** Reads JSON. Throws a SyntaxError when it is none. */
export function readJSON(text: string): unknown {
  if (!long.test(text)) return JSON.parse(text) as unknown;
  return parse(text, null, { parseNumber: exactNumber });
}

/** The number that a text of JSON spells, with all its digits. */
export function exactNumber(digits: string): number | LosslessNumber {
  const n = Number(digits);
  const significant = digits.replace(/[eE].*$/, '').replace('.', '').replace(/^-?0*/, '').length;
  return Number.isFinite(n) && (significant <= 15 || String(n) === digits) ? n : new LosslessNumber(digits);
}

/** Writes JSON; a number that was read here is written as it was. */
export function writeJSON(value: unknown, indent?: number): string {
  return stringify(value, null, indent) ?? 'null';
}

/** A value without parts: a number that is an object here is one all the same. */
export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || isLosslessNumber(value);
}
