// Words for calls and for what the Guardian saw: steps, alerts, chains, rules. How a call ended is in itemwords.ts.
import { count, endBy, moment, plain, plural, span } from './format';
import type { AlertKind, CallPart, CallView, Chain, DryRun, GuardAlert, GuardedView, Marked, StepView, Verdict } from './guardtypes';
import { isVerdict, verdictName, type Shown } from './itemwords';
import type { Text } from './types';

/** A verdict, or how a call ended without one, within a sentence. */
export const verdictWord = (v: Shown): string => verdictName(v).toLowerCase();

/** What a rule does, as the beginning of its sentence. */
export const ruleVerb: Record<Verdict, string> = { allow: 'Allow', deny: 'Deny', ask: 'Ask me' };

/** How a call ended: what the hub said for nobody is no denial of anybody's. */
export const ended = (verdict: Shown, judge: string | undefined): Shown => (verdict === 'deny' && endBy(judge ?? '')) || verdict;

/** Whether a step asked for leave, so that its verdict is worth showing. */
export const asked = (s: StepView): boolean => s.what === 'call' || s.what === 'subagent' || s.item !== undefined || s.rule !== undefined || s.verdict === 'deny' || s.verdict === 'modify';

const whats: Record<StepView['what'], string> = {
  session: 'session', turn: 'turn', prompt: 'prompt', call: 'call', result: 'result', answer: 'answer', subagent: 'subagent', other: 'step',
};
export const stepWord = (s: Pick<StepView, 'what'>): string => whats[s.what] ?? 'step';

/** `command`: of this program, without its name. */
export interface AlertWords { title: string; todo: string; command?: string }
/** What an alert means, and what to do about it. */
export const alertWords: Record<AlertKind, AlertWords> = {
  unsigned: { title: 'sends unsigned requests', todo: 'The hub refuses them, so every call of this agent is denied. Give it the hub’s secret, then start it again:', command: 'acs setup claude-code' },
  signature: { title: 'signs with another secret', todo: 'Its requests are refused. It reads another secret than this hub’s, or something changes its requests on the way. Set it up again:', command: 'acs setup claude-code' },
  unknown_session: { title: 'speaks for a session this hub does not know', todo: 'It began before this hub, or with other data. Start the agent again, so that it introduces itself.' },
  replay: { title: 'sent a request twice', todo: 'The second one was refused. Once is a hook that fired again; often is something that records and repeats requests.' },
  skew: { title: 'has a clock that differs', todo: 'Requests from more than a few minutes away are refused. Set the clock of its machine.' },
  chain: { title: 'disagrees about what happened', todo: 'Its record of the session is not the hub’s. Look at the session, and start the agent again if you did not expect this.' },
  changed: { title: 'has a record here that was changed', todo: 'A step of its session is not what the hub recorded: the data was changed by something else than the hub. The session’s page marks the step.' },
};

/** Whether the record of a session is whole, in words. */
export function chainWords(c: Chain): string {
  if (c.ok) return `verified, ${plural(c.steps, 'step')}${c.foreign ? `; signatures of ${count(c.foreign)} are of an earlier secret, and were not checked` : ''}`;
  return `Step ${count(c.broken_at ?? 0)} was changed after it was recorded${c.why ? `: ${c.why}` : ''}`;
}

/** What was agreed with the agent about waiting. */
export const termsWords = (s: GuardedView): string => {
  const wait = s.terms.decision_ms > 0 ? `It waits ${span(s.terms.decision_ms)} for an answer` : 'It was given no time to wait';
  const then = s.terms.on_decision_failure;
  return then === '' ? `${wait}.` : `${wait}; without one it ${then === 'allow' || then === 'proceed' ? 'goes ahead' : 'does not go ahead'}.`;
};

export const shortHash = (h: string): string => h.slice(0, 8);

/** A verdict as a dry run names it: allow, deny, modify, ask, waiting. */
export function shownVerdict(v: string): Shown {
  if (v === 'allow' || v === 'deny' || v === 'modify' || v === 'ask') return v;
  if (v === 'expired' || v === 'withdrawn') return v;
  return v === 'allow_edited' ? 'modify' : v === '' || v === 'waiting' ? 'ask' : 'deny';
}
export const pastWord = (v: string): string => (v === 'waiting' ? verdictWord('') : v === 'ask' || v === '' ? 'asked you' : v === 'hub' ? 'refused by the hub' : isVerdict(v) || v === 'allow_edited' ? verdictWord(shownVerdict(v)) : v.replaceAll(/[-_]/g, ' '));

const partTexts = (p: CallPart): Text[] => [...('text' in p ? [p.text] : []), ...('path' in p ? [p.path] : []), ...('url' in p ? [p.url] : [])];
/** What is risky about a call, as its card says it. */
export const callRisks = (c: CallView): string[] => c.parts.flatMap((p) => [
  ...('risks' in p ? (p.risks ?? []) : []),
  ...('outside' in p && p.outside ? [`${p.name}: outside the folder in which the agent works`] : []),
  ...(partTexts(p).some((t) => t.some((s) => s.m)) ? [`${p.name}: not all of it is what it looks like`] : []),
]);

/** What a rule matches of the calls that were. */
export function triedWords(run: Pick<DryRun, 'tried' | 'matched' | 'untold' | 'since' | 'changes'>, now: number): string {
  if (run.tried === 0) return 'There are no past calls to try it on.';
  const untold = run.untold > 0 ? ` Of ${plural(run.untold, 'call')}${run.matched > 0 ? ' more' : ''} it cannot be told.` : '';
  if (run.matched === 0) return `It ${untold ? 'certainly ' : ''}matches none of the ${plural(run.tried, 'past call')} since ${moment(run.since, now)}.${untold}`;
  return `It matches ${plural(run.matched, 'call')} of the ${count(run.tried)} since ${moment(run.since, now)}${run.changes.length === 0 ? ', and would have changed none' : ''}.${untold}`;
}

/** A text as the hub shows it, where something in it is not what it looks like. */
export const markedAs = (marked: Marked | undefined, text: string): Text | undefined => (marked && Object.hasOwn(marked, text) ? marked[text] : undefined);

/** Why a rule leaves a call to the person; the rule itself stands after it. */
export const askedWords = (asks: NonNullable<CallView['asks']>): string =>
  asks.untold ? `It may be one of the calls that a rule ${asks.verdict === 'deny' ? 'denies' : 'asks about'} (it does several things, or can be read in several ways):` : 'A rule asks you about this:';

/** What makes alerts one: their kind and agent, and the session where they are about a record. */
export const alertKey = (a: GuardAlert): string => `${a.kind} ${plain(a.agent)} ${a.session ?? ''}`;

/** Alerts with one key as one, the newest first. */
export function gathered(alerts: readonly GuardAlert[]): { alert: GuardAlert; times: number }[] {
  const byName = new Map<string, { alert: GuardAlert; times: number }>();
  for (const alert of [...alerts].sort((a, b) => b.at - a.at)) {
    const name = alertKey(alert);
    const had = byName.get(name);
    if (had) had.times++;
    else byName.set(name, { alert, times: 1 });
  }
  return [...byName.values()];
}

/** The warnings that more than one of the rules has, and how many do. */
export function sharedWarnings(rules: readonly { warnings: readonly string[] }[]): { text: string; rules: number }[] {
  const times = new Map<string, number>();
  for (const r of rules) for (const w of new Set(r.warnings)) times.set(w, (times.get(w) ?? 0) + 1);
  return [...times].filter(([, n]) => n > 1).map(([text, n]) => ({ text, rules: n }));
}
