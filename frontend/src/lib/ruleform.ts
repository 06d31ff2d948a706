// A rule as a form in simple words, and back. A field that is empty holds for every call.
import type { Match, MatchArgument, Op, RuleBody, Verdict } from './guardtypes';

export type Plain = 'protocol' | 'platform' | 'agent' | 'addressee' | 'folder' | 'session' | 'tool' | 'provider' | 'version';
export interface RuleForm extends Record<Plain, string> {
  verdict: Verdict; reason: string; arguments: MatchArgument[]; only: boolean; timed: boolean; from: string; to: string; days: number[];
}

/** The plain fields in the order in which they narrow a rule. `any`: what an empty one means. */
export const plainFields: readonly { key: Plain; label: string; hint: string; any: string }[] = [
  { key: 'tool', label: 'Tool', hint: '* is any text', any: 'any tool' },
  { key: 'folder', label: 'Folder', hint: 'this folder and what is below it', any: 'any folder' },
  { key: 'platform', label: 'Program', hint: 'that runs the agent, such as claude-code', any: 'any program' },
  { key: 'agent', label: 'Agent', hint: '* is any text', any: 'any agent' },
  { key: 'addressee', label: 'For whom', hint: 'the agent that is to do it, such as acp/worker', any: 'any agent' },
  { key: 'session', label: 'Session', hint: 'only this one', any: 'any session' },
  { key: 'protocol', label: 'Protocol', hint: 'such as acs', any: 'any protocol' },
  { key: 'provider', label: 'Whose tool', hint: 'exactly as the agent names it', any: 'whosever tool' },
  { key: 'version', label: 'Which version', hint: 'exactly as the agent names it', any: 'any version' },
];

export const ops: readonly { value: Op; label: string; hint: string }[] = [
  { value: 'is', label: 'is exactly', hint: 'this text, or this JSON value' },
  { value: 'like', label: 'looks like', hint: '* is any text' },
  { value: 'command', label: 'is a command starting with', hint: 'these words, and holds nothing that could start another command; where it allows, most options behind them are left to you' },
  { value: 'within', label: 'is a path in', hint: 'this folder or below it' },
  { value: 'host', label: 'is an address on', hint: 'a host; *.name is any host below it' },
];
export const dayNames = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;

export function ruleForm(verdict: Verdict, match: Match, reason = ''): RuleForm {
  const { protocol = '', platform = '', agent = '', addressee = '', folder = '', session = '', tool = '', provider = '', version = '', only = false, hours } = match;
  return {
    verdict, reason, protocol, platform, agent, addressee, folder, session, tool, provider, version, only, arguments: (match.arguments ?? []).map((a) => ({ ...a })),
    timed: hours !== undefined, from: hours?.from ?? '09:00', to: hours?.to ?? '18:00', days: [...(hours?.days ?? [])],
  };
}

/** What the form says, as it is sent: empty fields and arguments without a name are left out. */
export function ruleBody(form: RuleForm): RuleBody {
  const match: Match = {};
  for (const { key } of plainFields) if (form[key].trim() !== '') match[key] = form[key].trim();
  const named = form.arguments.filter((a) => a.name.trim() !== '').map((a) => ({ ...a, name: a.name.trim() }));
  if (named.length > 0) match.arguments = named;
  if (form.only) match.only = true;
  if (form.timed) match.hours = { from: form.from, to: form.to, ...(form.days.length > 0 && form.days.length < 7 ? { days: [...form.days].sort() } : {}) };
  const reason = form.reason.trim();
  return { verdict: form.verdict, match, ...(reason === '' ? {} : { reason }) };
}

/** Which argument of the form the n-th sent one is: those without a name were not sent. */
const sentIndex = (form: RuleForm, n: number): number => form.arguments.map((a, i) => (a.name.trim() === '' ? -1 : i)).filter((i) => i >= 0)[n] ?? -1;

/** What the hub has against the form, by field: "tool", "hours", "arguments/2", and '' for what has no field. */
export function formProblems(form: RuleForm, details: readonly { pointer: string; message: string }[]): Record<string, string> {
  const out: Record<string, string> = {};
  for (const d of details) {
    const [, root = '', field = '', n] = d.pointer.split('/');
    const at = root !== 'match' ? (root === 'reason' ? 'reason' : '')
      : field === 'arguments' && n !== undefined ? `arguments/${sentIndex(form, Number(n))}`
      : field === 'hours' || plainFields.some((f) => f.key === field) ? field : '';
    out[at] ??= d.message;
  }
  return out;
}
