import { describe, expect, it } from 'vitest';
import { collect, fields, initial, serverProblems, spoken, unanswerable } from '../src/lib/schemaform';
import { readJSON, writeJSON } from '../src/lib/exact';
import type { JSONSchema } from '../src/lib/types';

const one = (schema: JSONSchema, required = false) => fields({ type: 'object', properties: { x: schema }, required: required ? ['x'] : [] });
const read = (schema: JSONSchema, text: string, required = false) => {
  const { value, problems } = collect(one(schema, required), { '.x': text });
  return '.x' in problems ? { problem: problems['.x'] } : value;
};

describe('fields', () => {
  it.each<[JSONSchema, string]>([
    [{ type: 'string' }, 'text'], [{ type: 'string', format: 'multiline' }, 'lines'], [{ type: 'string', maxLength: 2000 }, 'lines'],
    [{ type: 'number' }, 'number'], [{ type: ['integer', 'null'] }, 'integer'], [{ type: 'boolean' }, 'boolean'], [{ enum: ['a', 1] }, 'choice'],
    [{ const: 'yes' }, 'choice'], [{ oneOf: [{ const: 1, title: 'One' }] }, 'choice'], [{ type: 'array', items: { type: 'string' } }, 'list'],
    [{ type: 'array', items: { type: 'string', enum: ['a', 'b'] } }, 'many'], [{ type: 'array', items: { oneOf: [{ const: 1 }] } }, 'many'],
    [{ type: 'array', items: { type: 'number' } }, 'json'], [{ type: 'object' }, 'json'], [{}, 'json'],
  ])('%j → %s', (schema, kind) => expect(one(schema)[0]?.kind).toBe(kind));

  it('carries label, need and secrecy', () => {
    expect(fields({ properties: { pw: { type: 'string', title: 'Password', 'x-ma2h-sensitive': true } }, required: ['pw'] })[0])
      .toMatchObject({ key: 'pw', label: 'Password', required: true, sensitive: true });
  });
  it('is empty for no schema', () => expect(fields(undefined)).toEqual([]));
});

describe('initial', () => {
  it('starts from the defaults', () => {
    const fs = fields({ properties: {
      s: { type: 'string', default: 'hi' }, n: { type: 'integer', default: 0 }, b: { type: 'boolean', default: false }, e: { enum: ['a', 'b'], default: 'b' },
      l: { type: 'array', items: { type: 'string' }, default: ['x', 'y'] }, o: { type: 'object', default: { a: 1 } }, none: { type: 'string' },
    } });
    expect(initial(fs)).toEqual({ '.s': 'hi', '.n': '0', '.b': 'false', '.e': '1', '.l': 'x\ny', '.o': '{\n  "a": 1\n}', '.none': '' });
  });
  it('never fills in a secret', () => {
    expect(initial(one({ type: 'string', default: 'hunter2', 'x-ma2h-sensitive': true }))).toEqual({ '.x': '' });
  });
});

describe('collect', () => {
  it('leaves out what is optional and empty, and asks for what is needed', () => {
    expect(read({ type: 'string' }, '')).toEqual({});
    expect(read({ type: 'integer' }, ' ')).toEqual({});
    expect(read({ type: 'string' }, '', true)).toEqual({ problem: 'This is needed.' });
    expect(read({ type: 'boolean' }, '', true)).toEqual({ problem: 'Choose one.' });
  });
  it.each<[JSONSchema, string, unknown]>([
    [{ type: 'integer' }, '42', 42], [{ type: 'number' }, '-1.5e3', -1500], [{ type: 'boolean' }, 'false', false], [{ enum: ['a', 7, null] }, '1', 7],
    [{ type: 'array', items: { type: 'string' } }, ' a \n\nb', ['a', 'b']], [{ type: 'object' }, '{"a":[1]}', { a: [1] }], [{ type: 'string' }, ' kept ', ' kept '],
    [{ type: 'string', format: 'email' }, 'a@b.org', 'a@b.org'], [{ type: 'string', pattern: '^v\\d+$' }, 'v12', 'v12'], [{ type: 'string', pattern: '^v' }, 'left to the hub', 'left to the hub'],
    [{ type: 'string', maxLength: 1 }, '𝒳', '𝒳'], [{ type: 'number', multipleOf: 0.1 }, '0.3', 0.3], [{ type: 'number' }, '+007.50', 7.5], [{ type: 'number' }, '.5', 0.5], [{ type: 'integer' }, '-0012', -12], [{ type: 'integer' }, '1e3', 1000], [{ type: 'integer' }, '5.0', 5],
  ])('%j reads %s', (schema, text, want) => expect(read(schema, text)).toEqual({ x: want }));
  it.each<[JSONSchema, string, RegExp]>([
    [{ type: 'integer' }, '4.5', /whole/], [{ type: 'number' }, 'four', /number/], [{ type: 'number' }, '0x10', /number/], [{ type: 'integer' }, '1e400', /too large/], [{ type: 'number' }, '.', /number/], [{ type: 'number' }, '-', /number/], [{ type: 'number' }, 'e5', /number/],
    [{ type: 'integer', minimum: 1, maximum: 65535 }, '70000', /65535/], [{ type: 'number', exclusiveMinimum: 0 }, '0', /More than 0/], [{ type: 'number', multipleOf: 5 }, '7', /multiple/],
    [{ type: 'string', minLength: 4 }, 'abc', /At least 4/], [{ type: 'string', maxLength: 2 }, 'abc', /At most 2/],
    [{ type: 'string', format: 'date' }, '31.1.2026', /date/], [{ type: 'string', format: 'date-time' }, '2026-01-31', /moment/], [{ type: 'string', format: 'uri' }, 'example.org', /address/],
    [{ type: 'object' }, '{', /JSON/], [{ type: 'object' }, '[]', /object/], [{ type: 'array', items: { type: 'string' }, minItems: 2 }, 'a', /At least 2/],
    [{ type: 'array', items: { type: 'string', maxLength: 1 } }, 'a\nbb', /Line 2/], [{ type: 'array', items: { type: 'string' }, uniqueItems: true }, 'a\na', /twice/],
  ])('%j refuses %s', (schema, text, why) => expect((read(schema, text) as { problem: string }).problem).toMatch(why));
});

describe('several of a few', () => {
  const days: JSONSchema = { type: 'array', items: { type: 'string', enum: ['mon', 'tue', 'wed'] }, uniqueItems: true };
  it('starts from the defaults that there are', () => {
    expect(initial(one({ ...days, default: ['wed', 'sun', 'mon', 'mon'] }))).toEqual({ '.x': '0,2' });
    expect(initial(one({ ...days, items: { type: 'string', enum: ['only'] } }))).toEqual({ '.x': '' });
  });
  it('reads the values in their order', () => expect(read(days, '0,2')).toEqual({ x: ['mon', 'wed'] }));
  it('keeps to its bounds', () => {
    expect(read({ ...days, minItems: 2 }, '1')).toEqual({ problem: 'Choose at least 2.' });
    expect(read({ ...days, maxItems: 1 }, '0,1')).toEqual({ problem: 'Choose only one.' });
    expect(read({ ...days, maxItems: 2 }, '0,1,2')).toEqual({ problem: 'Choose at most 2; these are 3.' });
  });
  it('may be empty where that is said, or where it is optional', () => {
    expect(read(days, '')).toEqual({});
    expect(read(days, '', true)).toEqual({ problem: 'Choose at least one.' });
    expect(read({ ...days, minItems: 3 }, '', true)).toEqual({ problem: 'Choose at least 3.' });
    expect(read({ ...days, minItems: 0 }, '', true)).toEqual({ x: [] });
  });
  it('is a text of no letters likewise', () => {
    expect(read({ type: 'string' }, '', true)).toEqual({ problem: 'This is needed.' });
    expect(read({ type: 'string', minLength: 0 }, '', true)).toEqual({ x: '' });
    expect(read({ type: 'string', minLength: 0, contentMediaType: 'text/plain' }, '', true)).toEqual({ x: '' });
    expect(read({ type: 'string', minLength: 0 }, '')).toEqual({});
  });
  it.each<[JSONSchema, string]>([
    [{ ...days, minItems: 1, maxItems: 2 }, 'choose 1 to 2'], [{ ...days, maxItems: 2 }, 'choose at most 2'], [{ ...days, minItems: 2, maxItems: 2 }, 'choose 2'],
    [{ type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 3 }, 'one per line, 1 to 3'], [{ type: 'array', items: { type: 'string' }, minItems: 2 }, 'one per line, at least 2'],
  ])('%j says %s', (schema, hint) => expect(one(schema)[0]?.hint).toBe(hint));
  it('is spoken as its labels', () => {
    const [f] = one({ ...days, items: { oneOf: [{ const: 'a', title: 'Alpha' }, { const: 'b', title: 'Beta' }] } });
    expect(f && spoken(f, '0,1')).toBe('Alpha, Beta');
  });
});

describe('numbers beyond 2^53', () => {
  const schema = (text: string) => readJSON(text) as JSONSchema;
  it('are different choices', () => {
    const [f] = one(schema('{"enum":[9007199254740993,9007199254740992],"default":9007199254740993}'));
    expect(f?.choices?.map((c) => c.label)).toEqual(['9007199254740993', '9007199254740992']);
    expect(f && initial([f])).toEqual({ '.x': '0' });
    expect(writeJSON(f && collect([f], { '.x': '0' }).value)).toBe('{"x":9007199254740993}');
    expect(one(schema('{"const":12345678901234567890}'))[0]?.choices?.[0]?.label).toBe('12345678901234567890');
  });
  it('are typed and sent with all digits', () => {
    for (const [kind, text] of [['integer', '9007199254740993'], ['integer', '-123456789012345678901234567890'], ['number', '0.1234567890123456789']] as const) {
      expect(writeJSON(read({ type: kind }, text))).toBe(`{"x":${text}}`);
    }
    expect(writeJSON(read({ type: 'object' }, '{"a":9007199254740993}'))).toBe('{"x":{"a":9007199254740993}}');
    expect(read({ type: 'object' }, '9007199254740993')).toEqual({ problem: 'Write an object: { … }' });
  });
  it('are the defaults as they are written', () => {
    expect(initial(one(schema('{"type":"integer","default":9007199254740993}')))).toEqual({ '.x': '9007199254740993' });
    expect(initial(one(schema('{"type":"object","default":{"a":9007199254740993}}')))).toEqual({ '.x': '{\n  "a": 9007199254740993\n}' });
  });
  it('are bounds to the last digit', () => {
    const s = schema('{"type":"integer","minimum":9007199254740993,"exclusiveMaximum":9007199254740997}');
    expect(one(s)[0]?.hint).toBe('9007199254740993 to 9007199254740997, whole number');
    expect(read(s, '9007199254740992')).toEqual({ problem: 'Not below 9007199254740993.' });
    expect(read(s, '9007199254740997')).toEqual({ problem: 'Less than 9007199254740997.' });
    expect(writeJSON(read(s, '9007199254740995'))).toBe('{"x":9007199254740995}');
    expect(read(schema('{"type":"integer","multipleOf":9007199254740993}'), '9007199254740992')).toEqual({ problem: 'A multiple of 9007199254740993.' });
    expect(writeJSON(read(schema('{"type":"integer","multipleOf":9007199254740993}'), '18014398509481986'))).toBe('{"x":18014398509481986}');
    expect(read(schema('{"type":"string","maxLength":1e400}'), 'a')).toEqual({ x: 'a' });
  });
});

describe('subschemas that are yes or no', () => {
  it('true takes any JSON, false is left out', () => {
    const fs = fields({ properties: { n: false, m: { type: 'string' }, any: true } });
    expect(fs.map((f) => [f.key, f.kind])).toEqual([['m', 'text'], ['any', 'json']]);
    expect(collect(fs, { '.m': 'x', '.any': '[null]' })).toEqual({ value: { m: 'x', any: [null] }, problems: {} });
  });
  it('what is required and takes nothing has no answer', () => {
    expect(unanswerable({ properties: { n: false, m: true } })).toEqual([]);
    expect(unanswerable({ properties: { n: false, e: { enum: [] }, m: true }, required: ['n', 'e', 'm'] })).toEqual(['n', 'e']);
    expect(unanswerable({ properties: { m: true }, required: ['x', 'm'], additionalProperties: false })).toEqual(['x']);
    expect(unanswerable({ properties: { m: true }, required: ['x'], additionalProperties: false, patternProperties: { x: true } })).toEqual([]);
    expect(unanswerable(undefined)).toEqual([]);
  });
  it('what is required and not described is asked for', () => {
    expect(fields({ properties: { m: true }, required: ['x', 'm'] }).map((f) => [f.key, f.kind, f.required])).toEqual([['m', 'json', true], ['x', 'json', true]]);
    expect(fields({ properties: { m: true }, required: ['x'], additionalProperties: { type: 'integer' } }).map((f) => f.kind)).toEqual(['json', 'integer']);
  });
  it.each<JSONSchema>([{ items: true }, { items: false }, { items: [{ type: 'string' }] as never }, {}])('a list of %j is JSON', (more) => expect(one({ type: 'array', ...more })[0]?.kind).toBe('json'));
});

describe('names that every object has', () => {
  const names = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', ''];
  const schema = { properties: Object.fromEntries(names.map((n) => [n, { type: 'string' }])), required: names };
  const fs = fields(schema);
  it('are fields like others', () => {
    expect(fs.map((f) => f.key)).toEqual(names);
    expect(Object.values(initial(fs))).toEqual(names.map(() => ''));
    expect(Object.keys(collect(fs, {}).problems)).toHaveLength(names.length);
    const { value, problems } = collect(fs, Object.fromEntries(fs.map((f) => [f.slot, `my ${f.key}`])));
    expect(problems).toEqual({});
    expect(writeJSON(value)).toBe(`{${names.map((n) => `"${n}":"my ${n}"`).join(',')}}`);
  });
  it('have their own problems', () => {
    const said = serverProblems(names.map((n) => ({ pointer: `/value/${n}`, message: `not ${n}` })), fs);
    expect(fs.map((f) => said[f.slot])).toEqual(names.map((n) => `not ${n}`));
    expect(said['']).toBeUndefined();
  });
  it.each(['constructor', 'toString', '__proto__'])('as a format mean nothing: %s', (format) => {
    expect(one({ type: 'string', format })[0]?.hint).toBeUndefined();
    expect(read({ type: 'string', format }, 'x')).toEqual({ x: 'x' });
  });
});

it('maps the hub’s pointers to fields', () => {
  const fs = fields({ properties: { port: { type: 'integer' }, 'a/b': { type: 'string' }, o: { type: 'object' } } });
  expect(serverProblems([
    { pointer: '/value/port', message: 'p' }, { pointer: '/value/a~1b', message: 's' }, { pointer: '/value/o/deep/1', message: 'o' },
    { pointer: '/comment', message: 'c' }, { pointer: '/value', message: 'whole' }, { pointer: '', message: 'later' },
  ], fs)).toEqual({ '.port': 'p', '.a/b': 's', '.o': 'o', comment: 'c', '': 'whole' });
});
