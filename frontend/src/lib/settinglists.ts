// Settings that are lists: how an entry is taken apart into fields, and put together again. What is not touched goes back as it came.

export interface EntryField {
  key: string; label: string; placeholder?: string;
  /** It may stay empty. */
  optional?: boolean;
  /** What may be chosen, the first one at first; anything may be written where there are none. */
  choices?: readonly { value: string; label: string }[];
  /** It is offered the names of the hub's secrets. */
  secret?: boolean;
  /** How wide its column is beside the others. */
  wide?: number;
}

export interface ListForm {
  /** What one entry is: "Add a folder". */
  noun: string;
  none: string;
  fields: readonly EntryField[];
  entries: (value: unknown) => unknown[];
  value: (entries: readonly unknown[]) => unknown;
  /** One text for each field. */
  parts: (entry: unknown) => string[];
  entry: (parts: readonly string[]) => unknown;
  /** What is wrong, by the key of a field; the hub judges the rest. */
  check: (parts: readonly string[]) => Record<string, string>;
}

const texts = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const cut = (text: string, at: number): [string, string] => (at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]);
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_WORDS = 'Letters, digits, dots, dashes and underscores only, beginning with a letter or a digit.';

const secrets: ListForm = {
  noun: 'secret', none: 'None: an agent that asks for a credential is refused.',
  fields: [
    { key: 'scope', label: 'Scope', placeholder: 'github:repo:write', wide: 3 },
    { key: 'secret', label: 'Name of the secret', placeholder: 'GITHUB_TOKEN', secret: true, wide: 2 },
    { key: 'type', label: 'It is', choices: [{ value: 'bearer_token', label: 'a bearer token' }, { value: 'api_key', label: 'an API key' }, { value: 'aws_credentials', label: 'AWS credentials' }], wide: 2 },
  ],
  entries: texts, value: (entries) => [...entries],
  parts: (entry) => {
    const text = String(entry);
    const [scope, rest] = cut(text, text.lastIndexOf('='));
    const [name, type] = cut(rest, rest.indexOf(':'));
    return [scope, name, type || 'bearer_token'];
  },
  entry: ([scope = '', name = '', type = '']) => `${scope}=${name}${type === 'bearer_token' ? '' : `:${type}`}`,
  check: ([, name = '']): Record<string, string> => (NAME.test(name) ? {} : { secret: NAME_WORDS }),
};

const workspaces: ListForm = {
  noun: 'folder', none: 'None: no agent may read a folder.',
  fields: [{ key: 'agent', label: 'Agent', placeholder: 'planner', wide: 2 }, { key: 'folder', label: 'Folder', placeholder: '/home/me/project', wide: 3 }],
  entries: texts, value: (entries) => [...entries],
  parts: (entry) => cut(String(entry), String(entry).indexOf('=')),
  entry: ([agent = '', folder = '']) => `${agent}=${folder}`,
  check: ([agent = '', folder = '']) => ({
    ...(agent.includes('=') ? { agent: 'The name of an agent here has no “=”.' } : {}),
    ...(/^(\/|[A-Za-z]:[\\/]|\\\\)/.test(folder) ? {} : { folder: 'Write the whole path of the folder, from the root.' }),
  }),
};

const peers: ListForm = {
  noun: 'hub', none: 'None: messages stay on this hub.',
  fields: [
    { key: 'system', label: 'Its name', placeholder: 'berlin', wide: 2 }, { key: 'url', label: 'Address', placeholder: 'wss://hub.example.org/map', wide: 4 },
    { key: 'secret', label: 'Secret', placeholder: 'none', optional: true, secret: true, wide: 2 },
  ],
  entries: texts, value: (entries) => [...entries],
  parts: (entry) => {
    const text = String(entry);
    const [system, rest] = cut(text, text.indexOf('='));
    const [url, ref] = cut(rest, rest.indexOf(' '));
    return [system, url, ref.replace(/^secret:/, '')];
  },
  entry: ([system = '', url = '', secret = '']) => `${system}=${url}${secret ? ` secret:${secret}` : ''}`,
  check: ([system = '', url = '', secret = '']) => ({
    ...(NAME.test(system) ? {} : { system: NAME_WORDS }),
    ...(/^wss:\/\/[^\s/]/.test(url) || /^ws:\/\/(localhost|127\.|\[::1\])/i.test(url) ? {} : { url: 'Write a whole address that begins with wss://; ws:// is for this machine only.' }),
    ...(/\s/.test(url) ? { url: 'An address has no spaces.' } : {}),
    ...(secret === '' || NAME.test(secret) ? {} : { secret: NAME_WORDS }),
  }),
};

const SHELL = ['/bin/sh', '-c'];

/** A command line in words, as a shell without variables reads it; null where a quote is never closed. */
export function words(line: string): string[] | null {
  const out: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const c = line.charAt(i);
    if (quote) {
      if (c === quote) quote = '';
      else if (c === '\\' && quote === '"' && /["\\]/.test(line.charAt(i + 1))) word += line.charAt(++i);
      else word += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= '';
    } else if (c === '\\' && i + 1 < line.length) word = (word ?? '') + line.charAt(++i);
    else if (/\s/.test(c)) {
      if (word !== null) out.push(word);
      word = null;
    } else word = (word ?? '') + c;
  }
  if (word !== null) out.push(word);
  return quote ? null : out;
}

/** Words as a line from which `words` reads the same ones. */
export const line = (all: readonly string[]): string => all.map((w) => (/^[^\s"'\\]+$/.test(w) ? w : `"${w.replaceAll(/["\\]/g, '\\$&')}"`)).join(' ');

const byShell = (command: readonly string[]): boolean => command.length === 3 && command[0] === SHELL[0] && command[1] === SHELL[1];

const roles: ListForm = {
  noun: 'role', none: 'None: no agent can have another one started.',
  fields: [
    { key: 'role', label: 'Role', placeholder: 'reviewer', wide: 2 }, { key: 'command', label: 'Command', placeholder: 'python3 /home/me/review.py', wide: 4 },
    { key: 'run', label: 'Run', choices: [{ value: 'words', label: 'as it stands' }, { value: 'shell', label: 'by the shell' }], wide: 2 },
  ],
  entries: (value) => (value !== null && typeof value === 'object' ? Object.entries(value) : []),
  value: (entries) => Object.fromEntries(entries as [string, unknown][]),
  parts: (entry) => {
    const [role, command] = entry as [string, string[]];
    return byShell(command) ? [role, command[2] ?? '', 'shell'] : [role, line(command), 'words'];
  },
  entry: ([role = '', command = '', run = '']) => [role, run === 'shell' ? [...SHELL, command] : (words(command) ?? [])],
  check: ([, command = '', run = '']): Record<string, string> => (run !== 'shell' && words(command) === null ? { command: 'A quote is opened and never closed.' } : {}),
};

/** The forms, by the key of the setting. */
export const listForms: Readonly<Record<string, ListForm>> = { 'map.credentials': secrets, 'map.workspaces': workspaces, 'map.peers': peers, 'acp.roles': roles };

/** What is wrong with an entry before the hub is asked: what is empty, what is there already, and what the form knows. `at`: the one that is changed. */
export function entryProblems(form: ListForm, parts: readonly string[], others: readonly unknown[]): Record<string, string> {
  const first = form.fields[0];
  const empty = Object.fromEntries(form.fields.flatMap((f, i) => (!f.optional && (parts[i] ?? '') === '' ? [[f.key, 'Write something here.']] : [])));
  if (Object.keys(empty).length > 0) return empty;
  if (first && others.some((o) => form.parts(o)[0] === parts[0])) return { [first.key]: 'It is there already.' };
  return form.check(parts);
}
