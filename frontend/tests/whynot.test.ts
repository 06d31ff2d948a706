import { describe, expect, it } from 'vitest';
import type { Detail } from '../src/lib/types';
import { whyNot, type Scene } from '../src/lib/whynot';

const request = { mode: 'select', allow_edit: true, allow_respond: true, allow_ignore: true };
const item = (more: object = {}) => ({ kind: 'question', state: 'open', box: 'needs', answerable: { ok: true }, request, ...more }) as unknown as Detail;
const scene = (detail: Detail | null, more: Partial<Scene> = {}): Scene => ({ box: true, rows: 3, unread: false, selected: detail !== null, shown: true, row: detail, detail, held: false, byKey: true, rules: false, talks: false, pis: false, rule: false, pi: null, ...more });

describe('a key that cannot act says why', () => {
  it('where nothing is selected', () => {
    expect(whyNot('choose', scene(null))).toBe('Select a question first: j.');
    expect(whyNot('star', scene(null))).toBe('Select an item first: j.');
    expect(whyNot('choose', scene(null, { rows: 0 }))).toBe('');
    expect(whyNot('choose', scene(null, { box: false }))).toBe('');
  });
  it('on a notice', () => {
    const notice = item({ kind: 'notice', state: 'delivered', box: 'notices', request: undefined });
    for (const id of ['choose', 'write', 'comment', 'decline'] as const) expect(whyNot(id, scene(notice))).toBe('A notice expects no answer.');
    expect(whyNot('snooze', scene(notice))).toMatch(/nothing to snooze/);
    expect(whyNot('archive', scene(notice))).toBeNull();
  });
  it('on what is over', () => {
    const gone = item({ state: 'cancelled', box: 'done' });
    expect(whyNot('snooze', scene(gone))).toBe('It is withdrawn already: there is nothing to snooze.');
    expect(whyNot('write', scene(gone))).toMatch(/^It is withdrawn already/);
  });
  it('on what is not permitted', () => {
    expect(whyNot('write', scene(item({ request: { ...request, allow_edit: false } })))).toMatch(/only one of its own choices/);
    expect(whyNot('decline', scene(item({ request: { ...request, allow_ignore: false } })))).toMatch(/does not take a decline/);
    expect(whyNot('choose', scene(item({ request: { ...request, mode: 'input' } })))).toMatch(/fill it in with w/);
    expect(whyNot('choose', scene(item({ answerable: { ok: false } })))).toBe('It is not yours to answer.');
    expect(whyNot('choose', scene(item(), { shown: false }))).toBe('Open it first: Enter.');
  });
  it('on a call', () => {
    const call = (...values: string[]) => item({ call: {}, request: { ...request, allow_edit: false, allow_ignore: false, options: values.map((value) => ({ value, label: [] })) } });
    for (const id of ['choose', 'allow', 'write', 'comment', 'decline'] as const) expect(whyNot(id, scene(call('allow', 'deny', 'allow_edited')))).toBeNull();
    expect(whyNot('write', scene(call('allow', 'deny')))).toMatch(/cannot be changed/);
    expect(whyNot('allow', scene(call('deny')))).toMatch(/cannot be allowed/);
    expect(whyNot('allow', scene(item()))).toMatch(/^Only a call is allowed/);
    expect(whyNot('allow', scene(null))).toBe('Select a question first: j.');
  });
  it('on a question of pi that shows a call and asks no leave for it', () => {
    const dialog = (more: object) => item({ call: { shown: true }, request: { ...request, allow_edit: false, no_comment: true, ...more } });
    expect(whyNot('allow', scene(dialog({ options: [{ value: 'allow', label: [] }] })))).toMatch(/^Only a call is allowed/);
    expect(whyNot('comment', scene(dialog({})))).toBe('Pi is sent the answer alone: a comment would reach nobody.');
    expect(whyNot('write', scene(dialog({ mode: 'input' })))).toBeNull();
    expect(whyNot('decline', scene(dialog({})))).toBeNull();
  });
  it('on rules', () => {
    expect(whyNot('new-rule', scene(null))).toMatch(/g r/);
    expect(whyNot('new-rule', scene(null, { byKey: false }))).toBeNull();
    expect(whyNot('new-rule', scene(null, { box: false, rules: true }))).toBeNull();
    expect(whyNot('new-pi', scene(null))).toMatch(/g p/);
    expect(whyNot('new-pi', scene(null, { box: false, pis: true }))).toBeNull();
    expect(whyNot('rule-up', scene(null, { box: false, rules: true }))).toBe('Select a rule first: j.');
    expect(whyNot('rule-up', scene(null))).toBe('');
    expect(whyNot('rule-down', scene(null, { box: false, rules: true, rule: true }))).toBeNull();
  });
  it('and acts where it can', () => {
    for (const id of ['choose', 'write', 'comment', 'decline', 'send', 'snooze', 'star', 'unread'] as const) expect(whyNot(id, scene(item()))).toBeNull();
    expect(whyNot('undo', scene(item(), { held: true }))).toBeNull();
    expect(whyNot('theme', scene(null, { box: false }))).toBeNull();
    expect(whyNot('archive', scene(item()))).toMatch(/still open/);
  });

  it('where a session of pi takes no such thing', () => {
    const pi = { runs: true, works: false, models: true, thinks: true };
    expect(whyNot('pi-model', scene(null))).toBe('');
    expect(whyNot('pi-model', scene(null, { pi }))).toBeNull();
    expect(whyNot('pi-model', scene(null, { pi: { ...pi, models: false } }))).toMatch(/does not say which models/);
    expect(whyNot('pi-thinking', scene(null, { pi: { ...pi, thinks: false } }))).toMatch(/does not think/);
    expect(whyNot('pi-stop', scene(null, { pi }))).toMatch(/nothing to stop/);
    expect(whyNot('pi-fork', scene(null, { pi: { ...pi, runs: false } }))).toMatch(/Take it up again/);
  });
});
