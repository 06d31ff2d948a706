// The arguments of a call as fields to edit: texts as they are, everything else as JSON.
import { readJSON, writeJSON } from './exact';
import type { CallView } from './guardtypes';

export interface ArgumentField {
  name: string;
  /** json: anything but a text. */
  kind: 'text' | 'json';
  /** What was asked, as the field shows it. */
  asked: string;
}

export function argumentFields(call: Pick<CallView, 'arguments' | 'editable'>): ArgumentField[] {
  const all = call.editable.includes('*');
  return Object.entries(call.arguments)
    .filter(([name]) => all || call.editable.includes(name))
    .map(([name, value]) => (typeof value === 'string' ? { name, kind: 'text', asked: value } : { name, kind: 'json', asked: writeJSON(value, 2) }));
}

/** What is wrong with a field as typed; '' when nothing is. */
export function argumentProblem(field: ArgumentField, typed: string): string {
  if (field.kind === 'text') return '';
  try {
    readJSON(typed);
    return '';
  } catch {
    return 'This is not JSON yet.';
  }
}

/** The fields that say something else than was asked. Another layout of the same JSON is no change. */
export function changedFields(fields: readonly ArgumentField[], typed: ReadonlyMap<string, string>): ArgumentField[] {
  return fields.filter((f) => {
    const now = typed.get(f.name) ?? f.asked;
    if (now === f.asked) return false;
    if (f.kind === 'text' || argumentProblem(f, now) !== '') return true;
    return writeJSON(readJSON(now)) !== writeJSON(readJSON(f.asked));
  });
}

/** The changed arguments by name, as they are sent. Call only when no field has a problem. */
export function editedArguments(fields: readonly ArgumentField[], typed: ReadonlyMap<string, string>): Record<string, unknown> {
  return Object.fromEntries(changedFields(fields, typed).map((f) => {
    const now = typed.get(f.name) ?? f.asked;
    return [f.name, f.kind === 'text' ? now : readJSON(now)];
  }));
}
