// Words for calls, verdicts, and what the Guardian saw: the same for a thing wherever it stands.
import { count, moment, plain, plural, span, who } from './format';
import type { AlertKind, CallPart, CallView, Chain, DryRun, GuardAlert, GuardedView, StepView, Verdict } from './guardtypes';
import type { Detail, Text } from './types';

export type Tone = 'done' | 'bad' | 'wait' | 'quiet';
/** The last two: the agent left before anybody answered, and nobody did in time. The hub said no, and no person did. */
export type Shown = Verdict | 'modify' | '' | 'withdrawn' | 'expired';

const verdicts: Record<Shown, { word: string; tone: Tone }> = {
  allow: { word: 'allowed', tone: 'done' }, modify: { word: 'allowed, changed', tone: 'done' }, deny: { word: 'denied', tone: 'bad' },
  ask: { word: 'asks you', tone: 'wait' }, '': { word: 'waits for you', tone: 'wait' },
  withdrawn: { word: 'withdrawn', tone: 'quiet' }, expired: { word: 'expired', tone: 'quiet' },
};
export const verdictWord = (v: Shown): string => verdicts[v].word;
export const verdictTone = (v: Shown): Tone => verdicts[v].tone;

/** What a rule does, as the beginning of its sentence. */
export const ruleVerb: Record<Verdict, string> = { allow: 'Allow', deny: 'Deny', ask: 'Ask me' };

/** The outcome of a call: what the person's answer made of it. */
export function callVerdict(d: Pick<Detail, 'state' | 'outcome'>): Shown | null {
  if (d.state === 'declined') return 'deny';
  if (d.state !== 'answered') return null;
  const v = d.outcome?.value;
  return v === 'allow' ? 'allow' : v === 'deny' ? 'deny' : v === 'allow_edited' ? 'modify' : null;
}

/** Who or what judged, where it was the hub for nobody: in full, and in a word or two. */
const judges: readonly (readonly [RegExp, string, string])[] = [
  [/timeout|expired/, 'the hub, because nobody answered in time', 'time ran out'],
  [/agent-(gone|disconnected)/, 'nobody: the request that waited is gone', 'agent gone'],
  [/agent-stopped/, 'the hub, because you stopped the agent', 'you, by a stop'],
  [/agent-revoked/, 'the hub, because you revoked the agent', 'agent revoked'],
  [/session-closed/, 'nobody: its session ended', 'session ended'],
  [/shutting-down/, 'the hub, which was closing', 'hub closing'],
];

function judged(judge: string, operator: string, brief: boolean): string {
  if (judge.startsWith('rule:')) return 'a rule';
  const name = judge.startsWith('system:') ? judge.slice(7).replaceAll('_', '-') : '';
  const known = judges.find(([of]) => name !== '' && of.test(name));
  return known ? known[brief ? 2 : 1] : who(judge, operator);
}

/** Who or what judged: "you", "a rule", "the hub, because nobody answered in time". */
export const judgeWords = (judge: string, operator: string): string => judged(judge, operator, false);
/** The same where there is little room: "time ran out". */
export const judgeBrief = (judge: string, operator: string): string => judged(judge, operator, true);

/** How a call ended: what the hub said for nobody is no denial of anybody's. */
export function ended(verdict: Shown, judge: string | undefined): Shown {
  const name = judge?.startsWith('system:') ? judge.slice(7).replaceAll('_', '-') : '';
  if (verdict !== 'deny' || name === '') return verdict;
  return /agent-(gone|disconnected)|session-closed|shutting-down/.test(name) ? 'withdrawn' : /timeout|expired/.test(name) ? 'expired' : 'deny';
}

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
export const pastWord = (v: string): string => (v === 'waiting' ? verdictWord('') : v === 'ask' || v === '' ? 'asked you' : v === 'hub' ? 'refused by the hub' : v in verdicts || v === 'allow_edited' ? verdictWord(shownVerdict(v)) : v.replaceAll(/[-_]/g, ' '));

const partTexts = (p: CallPart): Text[] => [...('text' in p ? [p.text] : []), ...('path' in p ? [p.path] : []), ...('url' in p ? [p.url] : [])];
/** What is risky about a call, as its card says it. */
export const callRisks = (c: CallView): string[] => c.parts.flatMap((p) => [
  ...('risks' in p ? (p.risks ?? []) : []),
  ...('outside' in p && p.outside ? [`${p.name}: outside the folder in which the agent works`] : []),
  ...(partTexts(p).some((t) => t.some((s) => s.m)) ? [`${p.name}: not all of it is what it looks like`] : []),
]);

/** What a rule matches of the calls that were. */
export function triedWords(run: Pick<DryRun, 'tried' | 'matched' | 'since' | 'changes'>, now: number): string {
  if (run.tried === 0) return 'There are no past calls to try it on.';
  if (run.matched === 0) return `It matches none of the ${plural(run.tried, 'past call')} since ${moment(run.since, now)}.`;
  return `It matches ${plural(run.matched, 'call')} of the ${count(run.tried)} since ${moment(run.since, now)}${run.changes.length === 0 ? ', and would have changed none' : ''}.`;
}

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
