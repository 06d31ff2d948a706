import { describe, expect, it } from 'vitest';
import { argumentFields, argumentProblem, changedFields, editedArguments } from '../src/lib/callform';
import { alertWords, asked, chainWords, ended, gathered, sharedWarnings, pastWord, shownVerdict, termsWords } from '../src/lib/guardwords';
import { who } from '../src/lib/format';
import type { GuardAlert, GuardedView, Match, StepView } from '../src/lib/guardtypes';
import { formProblems, ruleBody, ruleForm } from '../src/lib/ruleform';

describe('the arguments of a call as fields', () => {
  const call = { arguments: { command: 'ls', timeout: 5, env: { CI: '1' } }, editable: ['*'] };
  it('offers what may be edited, and nothing else', () => {
    expect(argumentFields(call).map((f) => [f.name, f.kind])).toEqual([['command', 'text'], ['timeout', 'json'], ['env', 'json']]);
    expect(argumentFields({ ...call, editable: ['timeout', 'nothing'] }).map((f) => f.name)).toEqual(['timeout']);
    expect(argumentFields({ ...call, editable: [] })).toEqual([]);
  });
  const fields = argumentFields(call);
  const typed = (texts: Record<string, string>) => new Map(Object.entries(texts));
  it('sends only what changed', () => {
    expect(editedArguments(fields, typed({}))).toEqual({});
    expect(editedArguments(fields, typed({ command: 'ls -l', timeout: '5' }))).toEqual({ command: 'ls -l' });
    expect(editedArguments(fields, typed({ timeout: '60' }))).toEqual({ timeout: 60 });
    expect(editedArguments(fields, typed({ env: '{"CI":"0"}' }))).toEqual({ env: { CI: '0' } });
  });
  it('takes another layout of the same JSON for no change', () => {
    expect(changedFields(fields, typed({ env: '{"CI":"1"}' }))).toEqual([]);
  });
  it('takes a space at the end of a command for a change', () => {
    expect(editedArguments(fields, typed({ command: 'ls ' }))).toEqual({ command: 'ls ' });
  });
  it('changes arguments with the names of every object', () => {
    const odd = argumentFields({ arguments: JSON.parse('{"__proto__":"a","constructor":1}') as Record<string, unknown>, editable: ['*'] });
    expect(changedFields(odd, new Map())).toEqual([]);
    expect(JSON.stringify(editedArguments(odd, new Map([['__proto__', 'b'], ['constructor', '2']])))).toBe('{"__proto__":"b","constructor":2}');
  });
  it('says what is not JSON', () => {
    const [command, timeout] = fields;
    expect(argumentProblem(timeout!, '6o')).not.toBe('');
    expect(argumentProblem(timeout!, '')).not.toBe('');
    expect(argumentProblem(command!, '{')).toBe('');
    expect(changedFields(fields, typed({ timeout: '6o' })).map((f) => f.name)).toEqual(['timeout']);
  });
});

describe('a rule as a form', () => {
  const whole: Match = {
    protocol: 'acs', platform: 'claude-code', agent: 'acs/claude-code/*', folder: '/home/m', session: 's1', tool: 'Bash',
    arguments: [{ name: 'command', op: 'command', value: 'npm test' }, { name: 'cwd', op: 'within', value: '/home/m' }], provider: 'me', version: '2', only: true,
    hours: { from: '09:00', to: '17:30', days: [1, 5] },
  };
  it('goes there and back', () => {
    for (const match of [whole, {}, { only: true }, { tool: 'Read' }, { hours: { from: '22:00', to: '06:00' } }] as Match[]) expect(ruleBody(ruleForm('allow', match)).match).toEqual(match);
    expect(ruleBody(ruleForm('deny', whole, ' no '))).toEqual({ verdict: 'deny', match: whole, reason: 'no' });
  });
  it('is its own: the offer it came from stays as it was', () => {
    const form = ruleForm('allow', whole);
    form.arguments[0]!.value = '*';
    expect(whole.arguments?.[0]?.value).toBe('npm test');
  });
  it('leaves out what is empty', () => {
    const form = { ...ruleForm('deny', { tool: ' Bash ' }), folder: '  ' };
    form.arguments = [{ name: ' ', op: 'is', value: 'x' }];
    expect(ruleBody(form).match).toEqual({ tool: 'Bash' });
  });
  it('takes all seven days for every day', () => {
    expect(ruleBody({ ...ruleForm('ask', { hours: { from: '1', to: '2' } }), days: [6, 5, 4, 3, 2, 1, 0] }).match.hours).toEqual({ from: '1', to: '2' });
  });
  it('keeps the spaces of a value: they mean something', () => {
    expect(ruleBody(ruleForm('allow', { arguments: [{ name: 'command', op: 'is', value: ' ls ' }] })).match.arguments?.[0]?.value).toBe(' ls ');
  });
  it('puts what the hub says beside the field it is about', () => {
    const form = ruleForm('allow', { arguments: [{ name: '', op: 'is', value: '' }, { name: 'url', op: 'host', value: 'a b' }] });
    expect(formProblems(form, [
      { pointer: '/match/arguments/0/value', message: 'is no host' }, { pointer: '/match/tool', message: 'too long' }, { pointer: '/match/hours/from', message: 'HH:MM' },
      { pointer: '/reason', message: 'too much' }, { pointer: '/verdict', message: 'what?' },
    ])).toEqual({ 'arguments/1': 'is no host', tool: 'too long', hours: 'HH:MM', reason: 'too much', '': 'what?' });
  });
});

describe('words', () => {
  it('names who judged', () => {
    expect(who('human:maria', 'maria')).toBe('you');
    expect(who('human:jo', 'human:maria')).toBe('jo');
    expect(who('rule:rule_1', 'maria')).toBe('a rule');
    expect(who('system:human_timeout', 'maria')).toMatch(/nobody answered in time/);
    expect(who('system:agent-gone', 'maria')).toMatch(/as the agent is no longer waiting/);
    expect(who('system:session_closed', 'maria')).toMatch(/its session ended/);
  });
  it('calls no denial what ended before anybody answered', () => {
    for (const judge of ['system:agent-gone', 'system:session_closed', 'system:hub_shutting_down']) expect(ended('deny', judge)).toBe('withdrawn');
    expect(ended('deny', 'system:human_timeout')).toBe('expired');
    expect(ended('deny', 'system:agent_revoked')).toBe('deny');
    expect(ended('deny', 'human:maria')).toBe('deny');
  });
  it('never calls a verdict it does not know an allow', () => {
    for (const v of ['hub', 'cancelled', 'nonsense', 'ALLOW']) expect(shownVerdict(v)).toBe('deny');
    for (const v of ['expired', 'withdrawn'] as const) expect([shownVerdict(v), pastWord(v)]).toEqual([v, v]); // nobody's no
    expect(pastWord('hub')).toBe('refused by the hub');
    expect(pastWord('agent_gone')).toBe('agent gone');
    expect(pastWord('allow_edited')).toBe('allowed with changes');
    expect(pastWord('')).toBe('asked you');
  });
  it('says once what is to be said of several rules', () => {
    expect(sharedWarnings([{ warnings: ['a', 'b'] }, { warnings: ['a'] }, { warnings: ['c'] }])).toEqual([{ text: 'a', rules: 2 }]);
  });
  it('says how the chain is', () => {
    expect(chainWords({ ok: true, steps: 1200 })).toBe('verified, 1,200 steps');
    expect(chainWords({ ok: true, steps: 1 })).toBe('verified, 1 step');
    expect(chainWords({ ok: true, steps: 3, foreign: 2 })).toBe('verified, 3 steps; signatures of 2 are of an earlier secret, and were not checked');
    expect(chainWords({ ok: false, steps: 9, broken_at: 4, why: 'the hash of the entry differs' })).toBe('Step 4 was changed after it was recorded: the hash of the entry differs');
  });
  it('shows a verdict where leave was asked, and not on every note', () => {
    const step = { what: 'result', verdict: 'allow' } as StepView;
    expect(asked(step)).toBe(false);
    expect(asked({ ...step, what: 'call' })).toBe(true);
    expect(asked({ ...step, verdict: 'deny' })).toBe(true);
    expect(asked({ ...step, rule: 'r' })).toBe(true);
  });
  it('tells the same trouble of the same agent once', () => {
    const alert = (at: number, kind: GuardAlert['kind'], agent: string): GuardAlert => ({ at, kind, agent: [{ t: agent }], text: '' });
    expect(gathered([alert(1, 'unsigned', 'a'), alert(3, 'skew', 'a'), alert(2, 'unsigned', 'a'), alert(1, 'unsigned', 'b')]).map((g) => [g.alert.at, g.alert.kind, g.times]))
      .toEqual([[3, 'skew', 1], [2, 'unsigned', 2], [1, 'unsigned', 1]]);
    const of = (session: string): GuardAlert => ({ ...alert(1, 'changed', 'a'), session });
    expect(gathered([of('acs/1'), of('acs/2'), of('acs/1')]).map((g) => [g.alert.session, g.times])).toEqual([['acs/1', 2], ['acs/2', 1]]);
  });
  it('has what to do for every alert', () => {
    for (const words of Object.values(alertWords)) expect(words.todo).toMatch(/\w/);
  });
  it('says what the agent does without an answer', () => {
    const terms = (decision_ms: number, on_decision_failure: string) => termsWords({ terms: { decision_ms, on_decision_failure } } as GuardedView);
    expect(terms(540_000, 'deny')).toBe('It waits 9 m for an answer; without one it does not go ahead.');
    expect(terms(10_000, 'allow')).toContain('goes ahead');
  });
});
