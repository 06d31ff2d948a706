// From the JSON Schema of an input ask to the fields of a form, and from what was typed to the value that is sent.
import { unclear } from './apart';
import { compare, exactNumber, isMultiple, isNumber, isWhole, readJSON, writeJSON, type Exact } from './exact';
import type { JSONSchema } from './types';

export type FieldKind = 'text' | 'lines' | 'number' | 'integer' | 'boolean' | 'choice' | 'many' | 'list' | 'json';
/** `shows` is the value as JSON, where the label does not tell it from the others. */
export interface Choice { label: string; value: unknown; shows?: string }
export interface Field {
  key: string;
  /** What its text and its problem are kept under: the key behind a mark, so that `constructor` is no name that every object has. */
  slot: string;
  label: string; description?: string; kind: FieldKind; required: boolean; sensitive: boolean;
  choices?: Choice[];
  hint?: string; schema: JSONSchema;
}
/** What the controls hold, by slot: text for everything but yes/no ("" is not answered), a choice (its index as text) and several
 *  choices (their indices, a comma between them). */
export type Raw = Record<string, string>;
/** What is wrong, by slot; '' is the form as a whole. */
export type Problems = Record<string, string>;

export const slotOf = (key: string): string => `.${key}`;

const formatHints = new Map(Object.entries({
  email: 'name@example.org', uri: 'https://…', date: '2026-01-31', 'date-time': '2026-01-31T14:20:00Z', time: '14:20:00Z',
  ipv4: '192.0.2.1', uuid: '8-4-4-4-12 hex digits', hostname: 'host.example.org',
}));
const formatChecks = new Map(Object.entries<{ ok: (s: string) => boolean; say: string }>({
  email: { ok: (s) => /^[^\s@]+@[^\s@]+$/.test(s), say: 'Write an address such as name@example.org.' },
  uri: { ok: (s) => /^[a-z][a-z0-9+.-]*:\S+$/i.test(s), say: 'Write a full address, beginning with https:// or similar.' },
  date: { ok: (s) => /^\d{4}-\d\d-\d\d$/.test(s) && !Number.isNaN(Date.parse(s)), say: 'Write a date such as 2026-01-31.' },
  'date-time': {
    ok: (s) => /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(s) && !Number.isNaN(Date.parse(s)),
    say: 'Write a moment such as 2026-01-31T14:20:00Z.',
  },
  time: { ok: (s) => /^\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(s), say: 'Write a time such as 14:20:00Z.' },
  ipv4: { ok: (s) => /^(\d{1,3}\.){3}\d{1,3}$/.test(s) && s.split('.').every((n) => Number(n) < 256), say: 'Write an address such as 192.0.2.1.' },
  uuid: { ok: (s) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(s), say: 'Write a UUID.' },
}));

function typeOf(s: JSONSchema): string | undefined {
  return Array.isArray(s.type) ? s.type.find((t) => t !== 'null') : s.type;
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : writeJSON(value);
}

/** The schema of a list's entries, where it says something. */
const entryOf = (s: JSONSchema): JSONSchema | null => (typeof s.items === 'object' && !Array.isArray(s.items) ? s.items : null);

function choicesOf(s: JSONSchema): Choice[] | undefined {
  if (Array.isArray(s.enum)) {
    const names = Array.isArray(s['enumNames']) ? (s['enumNames'] as unknown[]) : [];
    return s.enum.map((value, i) => ({ value, label: typeof names[i] === 'string' ? (names[i] as string) : show(value) }));
  }
  if ('const' in s) return [{ value: s['const'], label: show(s['const']) }];
  const variants = s['oneOf'] ?? s['anyOf'];
  if (Array.isArray(variants) && variants.length > 0 && variants.every((v) => v && typeof v === 'object' && 'const' in v)) {
    return (variants as JSONSchema[]).map((v) => ({ value: v['const'], label: v.title ?? show(v['const']) }));
  }
  return undefined;
}

function toldApart(choices: Choice[]): Choice[] {
  const hard = unclear(choices.map((c) => c.label));
  return choices.map((c, i) => (hard[i] ? { ...c, shows: writeJSON(c.value) } : c));
}

/** A choice in one line. */
export const choiceName = (c: Choice): string => (c.shows === undefined ? c.label : `${c.label} (${c.shows})`.trim());

function kindOf(s: JSONSchema): FieldKind {
  if (choicesOf(s)) return 'choice';
  switch (typeOf(s)) {
    case 'boolean': return 'boolean';
    case 'integer': return 'integer';
    case 'number': return 'number';
    case 'array': {
      const entry = entryOf(s);
      if (entry && choicesOf(entry)) return 'many';
      return entry && (typeOf(entry) ?? 'string') === 'string' ? 'list' : 'json';
    }
    case 'string': {
      const many = ['multiline', 'textarea', 'markdown'].includes(s.format ?? '') || bound(s.maxLength, 0) > 200
        || (typeof s['contentMediaType'] === 'string' && s['contentMediaType'].startsWith('text/'));
      return many ? 'lines' : 'text';
    }
    default: return 'json';
  }
}

/** A bound on how many; a number too long to count with is as good as the nearest one. */
const bound = (n: Exact | undefined, none: number): number => (n === undefined ? none : Number(String(n)));
const itemsOf = (s: JSONSchema): { min: number; max: number } => ({ min: bound(s.minItems, 0), max: bound(s.maxItems, Infinity) });
const lengthOf = (s: JSONSchema): { min: number; max: number } => ({ min: bound(s.minLength, 0), max: bound(s.maxLength, Infinity) });

function boundsOf(s: JSONSchema, verb: string): string[] {
  const { min, max } = itemsOf(s);
  if (min > 0 && max === min) return [`${verb}${min}`];
  if (min > 0 && max < Infinity) return [`${verb}${min} to ${max}`];
  if (min > 0) return [`${verb}at least ${min}`];
  return max < Infinity ? [`${verb}at most ${max}`] : [];
}

function hintOf(s: JSONSchema, kind: FieldKind): string | undefined {
  const hints: string[] = [];
  if (kind === 'number' || kind === 'integer') {
    const low = s.minimum ?? s.exclusiveMinimum;
    const high = s.maximum ?? s.exclusiveMaximum;
    if (low !== undefined && high !== undefined) hints.push(`${String(low)} to ${String(high)}`);
    else if (low !== undefined) hints.push(s.minimum !== undefined ? `${String(low)} or more` : `more than ${String(low)}`);
    else if (high !== undefined) hints.push(s.maximum !== undefined ? `${String(high)} or less` : `less than ${String(high)}`);
    if (kind === 'integer') hints.push('whole number');
  }
  const example = kind === 'text' && s.format ? formatHints.get(s.format) : undefined;
  if (example) hints.push(`e.g. ${example}`);
  if (kind === 'list') hints.push('one per line');
  if (kind === 'list' || kind === 'many') hints.push(...boundsOf(s, kind === 'many' ? 'choose ' : ''));
  if (kind === 'json') hints.push('JSON');
  if ((kind === 'text' || kind === 'lines') && s.maxLength !== undefined) hints.push(`at most ${String(s.maxLength)} characters`);
  return hints.length ? hints.join(', ') : undefined;
}

/** The properties with their schemas, in order, and what is required without being described. */
function properties(schema: JSONSchema | undefined): [string, JSONSchema | boolean][] {
  const described = Object.entries(schema?.properties ?? {});
  const names = new Set(described.map(([key]) => key));
  const other = schema?.['patternProperties'] === undefined ? (schema?.additionalProperties ?? true) : true;
  const undescribed = [...new Set(schema?.required)].filter((key) => !names.has(key));
  return [...described, ...undescribed.map((key): [string, JSONSchema | boolean] => [key, other])];
}

/** No value at all fits it. */
const never = (s: JSONSchema | boolean): boolean => s === false || (s !== true && Array.isArray(s.enum) && s.enum.length === 0);

/** What is required and takes no value: with any of it there, the form has no answer. */
export function unanswerable(schema: JSONSchema | undefined): string[] {
  const required = new Set(schema?.required);
  return properties(schema).filter(([key, s]) => required.has(key) && never(s)).map(([key]) => key);
}

/** The fields of the form: every property that takes a value. */
export function fields(schema: JSONSchema | undefined): Field[] {
  const required = new Set(schema?.required);
  return properties(schema).filter(([, s]) => !never(s)).map(([key, given]) => {
    const s = typeof given === 'boolean' ? {} : given;
    const kind = kindOf(s);
    const field: Field = {
      key, slot: slotOf(key), kind, schema: s, required: required.has(key), label: s.title?.trim() ? s.title : key, sensitive: s['x-ma2h-sensitive'] === true,
    };
    if (s.description) field.description = s.description;
    const choices = choicesOf(s) ?? (kind === 'many' ? choicesOf(entryOf(s) ?? {}) : undefined);
    if (choices) field.choices = toldApart(choices);
    const hint = hintOf(s, kind);
    if (hint) field.hint = hint;
    return field;
  });
}

/** What the controls start with: the defaults. Nothing secret has one here. */
export function initial(fs: readonly Field[]): Raw {
  const raw: Raw = {};
  for (const f of fs) raw[f.slot] = f.sensitive ? '' : initialOf(f);
  return raw;
}

const indexOf = (f: Field, value: unknown): number => f.choices?.findIndex((c) => writeJSON(c.value) === writeJSON(value)) ?? -1;

function initialOf(f: Field): string {
  const d = f.schema.default;
  if (d === undefined || d === null) return f.kind === 'choice' && f.choices?.length === 1 ? '0' : '';
  switch (f.kind) {
    case 'choice': {
      const at = indexOf(f, d);
      return at < 0 ? '' : String(at);
    }
    case 'many': return Array.isArray(d) ? [...new Set(d.map((v) => indexOf(f, v)))].filter((at) => at >= 0).sort((a, b) => a - b).join(',') : '';
    case 'list': return Array.isArray(d) ? d.map(show).join('\n') : '';
    case 'json': return writeJSON(d, 2);
    default: return show(d);
  }
}

/** Reads the controls. With any problem there, the value must not be sent. */
export function collect(fs: readonly Field[], raw: Raw): { value: Record<string, unknown>; problems: Problems } {
  const value = new Map<string, unknown>();
  const problems: Problems = {};
  for (const f of fs) {
    const text = raw[f.slot] ?? '';
    if (text === '' || (f.kind !== 'text' && f.kind !== 'lines' && text.trim() === '')) {
      // a list that may be empty by its own words says "none of them" by being empty, and a text that may be is an answer
      if (f.required && f.kind === 'many' && f.schema.minItems === 0) value.set(f.key, []);
      else if (f.required && (f.kind === 'text' || f.kind === 'lines') && f.schema.minLength === 0) value.set(f.key, '');
      else if (f.required && f.kind === 'many') problems[f.slot] = atLeast(Math.max(1, itemsOf(f.schema).min));
      else if (f.required) problems[f.slot] = f.kind === 'choice' || f.kind === 'boolean' ? 'Choose one.' : 'This is needed.';
      continue;
    }
    const read = readField(f, text);
    if ('problem' in read) problems[f.slot] = read.problem;
    else value.set(f.key, read.value);
  }
  return { value: Object.fromEntries(value), problems }; // which takes every name for a name like others
}

type Read = { value: unknown } | { problem: string };

function readField(f: Field, text: string): Read {
  switch (f.kind) {
    case 'boolean': return { value: text === 'true' };
    case 'choice': return { value: f.choices?.[Number(text)]?.value };
    case 'number': case 'integer': return readNumber(f, text.trim());
    case 'many': return readMany(f, text);
    case 'list': return readList(f.schema, text);
    case 'json': return readValue(f.schema, text);
    default: return readText(f.schema, text);
  }
}

const NUMBER = /^([+-]?)0*(\d*)(?:\.(\d*))?(e[+-]?\d+)?$/i;

/** What was typed as JSON spells a number, with all its digits; null when it is none. */
function spelled(text: string): string | null {
  const [, sign, whole = '', part = '', exponent = ''] = NUMBER.exec(text) ?? [];
  if (sign === undefined || !/^[+-]?\.?\d/.test(text)) return null;
  return `${sign === '-' ? '-' : ''}${whole || '0'}${part && `.${part}`}${exponent}`;
}

function readNumber(f: Field, text: string): Read {
  const s = f.schema;
  const digits = spelled(text);
  if (digits === null) return { problem: 'Write a number.' };
  const n = exactNumber(digits);
  if (!Number.isFinite(Number(digits))) return { problem: 'This number is too large.' };
  if (f.kind === 'integer' && !isWhole(n)) return { problem: 'Write a whole number.' };
  if (s.minimum !== undefined && compare(n, s.minimum) < 0) return { problem: `Not below ${String(s.minimum)}.` };
  if (s.maximum !== undefined && compare(n, s.maximum) > 0) return { problem: `Not above ${String(s.maximum)}.` };
  if (s.exclusiveMinimum !== undefined && compare(n, s.exclusiveMinimum) <= 0) return { problem: `More than ${String(s.exclusiveMinimum)}.` };
  if (s.exclusiveMaximum !== undefined && compare(n, s.exclusiveMaximum) >= 0) return { problem: `Less than ${String(s.exclusiveMaximum)}.` };
  if (s.multipleOf !== undefined && isMultiple(n, s.multipleOf) === false) return { problem: `A multiple of ${String(s.multipleOf)}.` };
  return { value: n };
}

function readText(s: JSONSchema, text: string): Read {
  const length = [...text].length;
  const { min, max } = lengthOf(s);
  if (length < min) return { problem: `At least ${min} characters; these are ${length}.` };
  if (length > max) return { problem: `At most ${max} characters; these are ${length}.` };
  // A pattern is left to the hub: an agent wrote it, and run here it could make the page stand still for ever.
  const check = s.format ? formatChecks.get(s.format) : undefined;
  if (check && !check.ok(text)) return { problem: check.say };
  return { value: text };
}

const atLeast = (n: number): string => `Choose at least ${n === 1 ? 'one' : n}.`;

function readMany(f: Field, text: string): Read {
  const picked = text.split(',').map(Number);
  const { min, max } = itemsOf(f.schema);
  if (picked.length < min) return { problem: atLeast(min) };
  if (picked.length > max) return { problem: max === 1 ? 'Choose only one.' : `Choose at most ${max}; these are ${picked.length}.` };
  return { value: picked.map((at) => f.choices?.[at]?.value) };
}

function readList(s: JSONSchema, text: string): Read {
  const lines = text.split('\n').map((l) => l.trim()).filter((l) => l !== '');
  const { min, max } = itemsOf(s);
  if (lines.length < min) return { problem: `At least ${min} ${min === 1 ? 'line' : 'lines'}.` };
  if (lines.length > max) return { problem: `At most ${max} ${max === 1 ? 'line' : 'lines'}.` };
  if (s['uniqueItems'] === true && new Set(lines).size < lines.length) return { problem: 'No line twice.' };
  for (const [i, line] of lines.entries()) {
    const read = readText(entryOf(s) ?? {}, line);
    if ('problem' in read) return { problem: `Line ${i + 1}: ${read.problem}` };
  }
  return { value: lines };
}

function readValue(s: JSONSchema, text: string): Read {
  let value: unknown;
  try {
    value = readJSON(text);
  } catch {
    return { problem: 'This is not JSON yet.' };
  }
  const type = typeOf(s);
  if (type === 'object' && (typeof value !== 'object' || value === null || Array.isArray(value) || isNumber(value))) return { problem: 'Write an object: { … }' };
  if (type === 'array' && !Array.isArray(value)) return { problem: 'Write an array: [ … ]' };
  return { value };
}

/** What a control holds, as the person sees it. */
export function spoken(f: Field, text: string): string {
  if (f.kind !== 'choice' && f.kind !== 'many') return text;
  return text.split(',').map((at) => {
    const c = f.choices?.[Number(at)];
    return c ? choiceName(c) : at;
  }).join(', ');
}

/** Which field's slot each of the hub's pointers ("/value/port") means; '' is the form as a whole. */
export function serverProblems(details: readonly { pointer: string; message: string }[], fs: readonly Field[]): Problems {
  const problems: Problems = {};
  for (const d of details) {
    const path = d.pointer.split('/').slice(1).map((p) => p.replaceAll('~1', '/').replaceAll('~0', '~'));
    const key = path[0] === 'value' ? path[1] : path[0];
    const known = key !== undefined && fs.some((f) => f.key === key) ? slotOf(key) : path[0] === 'comment' ? 'comment' : '';
    problems[known] ??= d.message;
  }
  return problems;
}
