import { describe, expect, test } from 'vitest';
import { exactNumber, isNumber, readJSON, writeJSON } from '../src/lib/exact';

describe('numbers keep their digits', () => {
  test.each([
    '9007199254740993', '[9007199254740992,9007199254740993]', '{"a":{"b":[-12345678901234567890]}}', '1234567890.12345678901234',
    '{"x":1,"y":"9007199254740993","z":null,"t":true}', '1e400', '0', '-0.5', '[]', '{}', '"\\u0000é"',
  ])('%s', (text) => {
    expect(writeJSON(readJSON(text))).toBe(text);
  });
  test('an ordinary number is one', () => {
    expect(readJSON('[1, 2.5, 1e3, 9007199254740991]')).toEqual([1, 2.5, 1000, 9007199254740991]);
    expect(isNumber(readJSON('9007199254740993'))).toBe(true);
    expect(isNumber('1')).toBe(false);
    expect(exactNumber('12')).toBe(12);
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
