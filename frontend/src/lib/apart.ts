// Labels that do not tell their choices apart: then the values, which do, are shown beside them.
import { plain } from './format';
import type { Option, Text } from './types';
import { visible } from './visible';

/** What is left of a label at a glance: how wide its letters and its spaces are tells nobody anything. */
const glance = (label: Text): string => plain(label).normalize('NFKC').replace(/\s+/g, ' ').trim();

/** For each label, whether it is empty or reads like another. */
export function unclear(labels: readonly (Text | string)[]): boolean[] {
  const read = labels.map((l) => glance(typeof l === 'string' ? visible(l) : l));
  const times = new Map<string, number>();
  for (const r of read) times.set(r, (times.get(r) ?? 0) + 1);
  return read.map((r) => r === '' || (times.get(r) ?? 0) > 1);
}

/** The values of those options whose labels do not tell them apart, by value. */
export function unclearValues(options: readonly Option[]): ReadonlySet<string> {
  const hard = unclear(options.map((o) => o.label));
  return new Set(options.filter((_, i) => hard[i]).map((o) => o.value));
}

/** What an option is called where its value is not beside it. */
export function optionName(option: Option, options: readonly Option[]): string {
  if (!unclearValues(options).has(option.value)) return plain(option.label);
  return `${plain(option.label)} (${plain(visible(option.value))})`.trim();
}
