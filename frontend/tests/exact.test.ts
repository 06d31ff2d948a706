import { describe, expect, test } from 'vitest';
import { compare, exactNumber, isMultiple, isNumber, isWhole, readJSON, writeJSON } from '../src/lib/exact';

describe('numbers keep their digits', () => {
  test.each([
    '9007199254740993', '[9007199254740992,9007199254740993]', '{"a":{"b":[-12345678901234567890]}}', '1234567890.12345678901234',
    '{"x":1,"y":"9007199254740993","z":null,"t":true}', '1e400', '1e-400', '1.5e-320', '0', '-0.5', '[]', '{}', '"\\u0000é"',
  ])('%s', (text) => {
    expect(writeJSON(readJSON(text))).toBe(text);
  });
  test('an ordinary number is one', () => {
    expect(readJSON('[1, 2.5, 1e3, 9007199254740991]')).toEqual([1, 2.5, 1000, 9007199254740991]);
    expect(isNumber(readJSON('9007199254740993'))).toBe(true);
    expect(isNumber('1')).toBe(false);
    expect(exactNumber('12')).toBe(12);
  });
  test('they are compared by all of them', () => {
    const order = ['-9007199254740993', '-9007199254740992', '-1', '0', '1e-400', '0.1', '1', '9007199254740992', '9007199254740993', '1e20', '1e400'].map(exactNumber);
    for (const [i, a] of order.entries()) for (const [j, b] of order.entries()) expect(Math.sign(compare(a, b)), `${String(a)} and ${String(b)}`).toBe(Math.sign(i - j));
    expect(compare(exactNumber('1e3'), exactNumber('1000.0'))).toBe(0);
  });
  test('whole, and multiples', () => {
    for (const whole of ['0', '-0', '5.0', '1e3', '1.5e1', '9007199254740993', '1e400']) expect(isWhole(exactNumber(whole)), whole).toBe(true);
    for (const part of ['0.5', '1e-3', '9007199254740993.5', '1.55e1']) expect(isWhole(exactNumber(part)), part).toBe(false);
    expect(isMultiple(0.3, 0.1)).toBe(true);
    expect(isMultiple(0, 7)).toBe(true);
    expect(isMultiple(-21, 7)).toBe(true);
    expect(isMultiple(1000, 30)).toBe(false);
    expect(isMultiple(exactNumber('1e-300'), 7)).toBe(false);
    expect(isMultiple(exactNumber('1e300'), exactNumber('1e-9999999'))).toBeNull();
  });
  test('names of every object are names like others', () => {
    for (const text of ['{"__proto__":9007199254740993,"constructor":1}', '{"__proto__":1,"toString":2}']) {
      expect(Object.keys(readJSON(text) as object)).toHaveLength(2);
      expect(writeJSON(readJSON(text))).toBe(text);
    }
  });
  test('what is no JSON is refused', () => {
    for (const text of ['', '{', '1234567890123456789x', '{"a":1,}', 'NaN']) expect(() => readJSON(text), text).toThrow();
  });
});
