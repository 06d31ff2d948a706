// Labels that do not tell their choices apart: then the values, which do, are shown beside them.
import { skeleton } from './alike';
import { plain } from './format';
import type { Option, Text } from './types';
import { visible } from './visible';

/** What is left of a label at a glance: how wide its letters and its spaces are, and which script has them, tells nobody anything. */
const glance = (label: Text): string => skeleton(plain(label).normalize('NFKC')).replace(/\s+/g, ' ').trim();

/** For each label, whether it is empty or reads like another. */
export function unclear(labels: readonly (Text | string)[]): boolean[] {
  const read = labels.map((l) => glance(typeof l === 'string' ? visible(l) : l));
  const times = new Map<string, number>();
  for (const r of read) times.set(r, (times.get(r) ?? 0) + 1);
  return read.map((r) => r === '' || (times.get(r) ?? 0) > 1);
}

/** A value in which every character can be told: in quotes, and beyond ASCII by number. */
const spelled = (value: string): string => JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The options whose labels do not tell them apart: by value, what is shown of it, spelled out where values read alike too. */
export function unclearValues(options: readonly Option[]): ReadonlyMap<string, string> {
  const hard = unclear(options.map((o) => o.label));
  const those = options.filter((_, i) => hard[i]).map((o) => o.value);
  const alike = unclear(those);
  return new Map(those.map((v, i) => [v, alike[i] ? spelled(v) : v]));
}

/** What an option is called where its value is not beside it. */
export function optionName(option: Option, options: readonly Option[]): string {
  const value = unclearValues(options).get(option.value);
  return value === undefined ? plain(option.label) : `${plain(option.label)} (${plain(visible(value))})`.trim();
}
