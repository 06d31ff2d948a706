// What the rules that are offered have in common, and in what each differs: one fact for each thing that a rule's sentence says.
import type { Match } from './guardtypes';
import { dayNames, ops } from './ruleform';

export interface Fact { label: string; value: string; /** How the value is compared, where it is not simply that. */ how?: string }

const only: readonly { key: 'agent' | 'addressee' | 'platform' | 'protocol' | 'folder' | 'session'; label: string; how?: string }[] = [
  { key: 'agent', label: 'Agent' }, { key: 'addressee', label: 'For whom' }, { key: 'platform', label: 'Program' }, { key: 'protocol', label: 'Protocol' },
  { key: 'folder', label: 'Folder', how: 'or below it' }, { key: 'session', label: 'Session' },
];

/** All that a match holds, in the order of its sentence. `aside`: which arguments do not count as others. */
export function facts(m: Match, aside = ''): Fact[] {
  return [
    { label: 'Tool', value: m.tool ?? '', how: m.tool ? (m.tool.includes('*') ? '* is any text' : undefined) : 'any tool' },
    ...(m.provider ? [{ label: 'Whose tool', value: m.provider }] : []),
    ...(m.version ? [{ label: 'Which version', value: m.version }] : []),
    ...(m.arguments ?? []).map((a) => ({ label: a.name, value: a.value, how: a.op === 'is' ? 'exactly' : ops.find((o) => o.value === a.op)?.label })),
    ...(m.only ? [{ label: 'Arguments', value: '', how: `${m.arguments?.length ? 'no others' : 'none'}${aside ? ` (${aside})` : ''}` }] : []),
    ...only.flatMap(({ key, label, how }) => (m[key] ? [{ label, value: m[key], how: m[key].includes('*') && key === 'agent' ? '* is any text' : how }] : [])),
    ...(m.hours ? [{ label: 'Hours', value: `${m.hours.from}–${m.hours.to}`, how: m.hours.days?.length ? m.hours.days.map((d) => dayNames[d]).join(', ') : 'every day' }] : []),
  ].map(({ label, value, how }) => (how === undefined ? { label, value } : { label, value, how }));
}

const name = (f: Fact): string => JSON.stringify([f.label, f.value, f.how]);

/** The facts that every one of the matches holds, and for each of them those that are its own. */
export function apart(offers: readonly { match: Match; aside?: string }[]): { common: Fact[]; own: Fact[][] } {
  const all = offers.map((o) => facts(o.match, o.aside));
  const [first = []] = all;
  const common = all.length < 2 ? [] : first.filter((f) => all.every((other) => other.some((o) => name(o) === name(f))));
  const shared = new Set(common.map(name));
  return { common, own: all.map((list) => list.filter((f) => !shared.has(name(f)))) };
}
