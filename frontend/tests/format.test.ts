import { describe, expect, it } from 'vitest';
import { age, ago, atMoment, humanActor, left, moment, percentOf, plain, plural, runWords, shortCount, span, who, windowTitle, words } from '../src/lib/format';

const now = new Date(2026, 10, 29, 14, 0, 0).getTime(); // a Sunday
const M = 60_000, H = 60 * M, D = 24 * H;

describe('age', () => {
  it.each([
    [now, 'just now'], [now + 5 * M, 'just now'], [now - 44_000, 'just now'], [now - 45_000, '1 m'], [now - 59 * M, '59 m'],
    [now - H, '1 h'], [now - 23 * H, '23 h'], [now - D, '1 d'], [now - 13 * D, '13 d'], [now - 40 * D, '20 Oct'], [now - 400 * D, '25 Oct 2025'],
  ])('%d → %s', (at, want) => expect(age(at, now)).toBe(want));
});

it('says how long ago in a sentence', () => {
  expect([now, now - 5 * M, now - 40 * D].map((at) => ago(at, now))).toEqual(['just now', '5 m ago', 'on 20 Oct']);
});

it('calls a run by its name once', () => {
  expect(['7', 'run_7', 'Run 7', 'runner'].map((id) => plain(runWords([{ t: id }])))).toEqual(['run 7', 'run_7', 'Run 7', 'run runner']);
});

describe('left', () => {
  it.each([
    [-1, '0:00'], [0, '0:00'], [1, '0:01'], [42_000, '0:42'], [9 * M + 5000, '9:05'], [10 * M, '10 m'], [59 * M, '59 m'],
    [H, '1 h 00 m'], [2 * H + 5 * M, '2 h 05 m'], [11 * H, '11 h'], [47 * H, '47 h'], [3 * D, '3 d'],
  ])('%d → %s', (rest, want) => expect(left(now + rest, now)).toBe(want));
  it('never shows ten minutes as 10:00', () => expect(left(now + 599_500, now)).toBe('9 m'));
});

describe('moment', () => {
  it.each([
    [now + 20 * M, '14:20'], [now + D, 'tomorrow 14:00'], [now - D, 'yesterday 14:00'], [now + 3 * D, 'Wed 14:00'], [now + 30 * D, '29 Dec 14:00'], [now + 60 * D, '28 Jan 2027 14:00'],
  ])('%d → %s', (at, want) => expect(moment(at, now)).toBe(want));
  it('has "at" before it in a sentence only on the same day', () => expect([now + 20 * M, now + D, now - 3 * D].map((at) => atMoment(at, now))).toEqual(['at 14:20', 'tomorrow 14:00', 'Thu 14:00']));
});

it('says how long something took', () => {
  expect([42, 300, 40_000, 2 * M, 3 * H].map(span)).toEqual(['42 ms', '0.3 s', '40 s', '2 m', '3 h']);
});

it('names actors', () => {
  expect(who('human:maria', 'maria')).toBe('you');
  expect(who('human:maria', 'human:maria')).toBe('you');
  expect(who('human:jo', 'maria')).toBe('jo');
  expect(who('agent:deploybot/dev-team', 'maria')).toBe('deploybot/dev-team');
  expect(who('agent:a:b', 'maria')).toBe('a:b');
  expect(who('system:expired', 'maria')).toBe('the deadline');
  expect(who('system:agent-gone', 'maria')).toBe('the hub, as the agent is no longer waiting');
  expect(who('system:hub', 'maria')).toBe('the hub');
  expect(who('system:new_thing', 'maria')).toBe('the hub (new thing)');
});

it('keeps marks visible in plain text', () => {
  expect(plain([{ t: 'Run ' }, { t: 'RLO', m: 'U+202E' }, { t: 'x' }])).toBe('Run [RLO]x');
  expect(plain(undefined)).toBe('');
});

it('counts', () => {
  expect([plural(1, 'item'), plural(2, 'item'), plural(12_000, 'item')]).toEqual(['1 item', '2 items', '12,000 items']);
  expect([shortCount(7), shortCount(100)]).toEqual(['7', '99+']);
  expect([windowTitle(0), windowTitle(3)]).toEqual(['Deskbell', '(3) Deskbell']);
});

it('finds words in keys', () => {
  expect(words('allow_operator')).toBe('Allow operator');
  expect(humanActor('maria')).toBe('human:maria');
  expect(humanActor('human:maria')).toBe('human:maria');
});

it('says that something is whole only when it is', () => {
  expect([0, 0.29, 0.5, 0.996, 0.999999999999, 1, 2, -1].map(percentOf)).toEqual([0, 29, 50, 99, 99, 100, 100, 0]);
});
