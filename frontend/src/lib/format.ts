// Words for times, counts, actors and texts. Pure: the clock comes in as an argument.
import type { Text } from './types';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LOCALE = 'en-GB';

const hourMinute = new Intl.DateTimeFormat(LOCALE, { hour: '2-digit', minute: '2-digit' });
const weekday = new Intl.DateTimeFormat(LOCALE, { weekday: 'short' });
const dayMonth = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short' });
const dayMonthYear = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short', year: 'numeric' });
const complete = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'full', timeStyle: 'medium' });
const number = new Intl.NumberFormat('en-US');

/** The text as one string, marked stretches by their label. For tooltips and accessible names, not for showing. */
export function plain(text: Text | undefined): string {
  return text?.map((s) => (s.m ? `[${s.t}]` : s.t)).join('') ?? '';
}

/** How long ago, in the fewest characters: "just now", "5 m", "3 h", "2 d", "12 Mar". */
export function age(at: number, now: number): string {
  const past = now - at;
  if (past < 45_000) return 'just now';
  if (past < HOUR) return `${Math.max(1, Math.floor(past / MINUTE))} m`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h`;
  if (past < 14 * DAY) return `${Math.floor(past / DAY)} d`;
  return date(at, now);
}

/** The same in a sentence: "just now", "5 m ago", "on 12 Mar". */
export function ago(at: number, now: number): string {
  const a = age(at, now);
  if (a === 'just now') return a;
  return /\d (m|h|d)$/.test(a) ? `${a} ago` : `on ${a}`;
}

/** What is left: "0:42" and "9:05" below ten minutes, then "12 m", "2 h 05 m", "3 d". */
export function left(until: number, now: number): string {
  const rest = until - now;
  if (rest <= 0) return '0:00';
  const seconds = Math.ceil(rest / 1000);
  if (seconds < 600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  if (rest < HOUR) return `${Math.floor(rest / MINUTE)} m`;
  if (rest < 10 * HOUR) return `${Math.floor(rest / HOUR)} h ${String(Math.floor((rest % HOUR) / MINUTE)).padStart(2, '0')} m`;
  if (rest < 2 * DAY) return `${Math.floor(rest / HOUR)} h`;
  return `${Math.floor(rest / DAY)} d`;
}

function date(at: number, now: number): string {
  return (new Date(at).getFullYear() === new Date(now).getFullYear() ? dayMonth : dayMonthYear).format(at);
}

function startOfDay(at: number): number {
  const d = new Date(at);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
}

/** A moment as a person says it: "14:20", "tomorrow 09:00", "Tue 14:20", "12 Mar 14:20". */
export function moment(at: number, now: number): string {
  const clock = hourMinute.format(at);
  const days = Math.round((startOfDay(at) - startOfDay(now)) / DAY);
  if (days === 0) return clock;
  if (days === 1) return `tomorrow ${clock}`;
  if (days === -1) return `yesterday ${clock}`;
  if (Math.abs(days) < 7) return `${weekday.format(at)} ${clock}`;
  return `${date(at, now)} ${clock}`;
}

/** The same behind a verb: "at 14:20", and of another day "tomorrow 09:00", "Tue 14:20". */
export const atMoment = (at: number, now: number): string => (startOfDay(at) === startOfDay(now) ? 'at ' : '') + moment(at, now);

/** The whole truth about a moment, for tooltips. */
export const exact = (at: number): string => complete.format(at);

/** A length of time: "42 ms", "0.3 s", "40 s", "2 m", "3 h". */
export function span(ms: number): string {
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.round(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} m`;
  return ms < 2 * DAY ? `${Math.round(ms / HOUR)} h` : `${Math.round(ms / DAY)} d`;
}

export const count = (n: number): string => number.format(n);
export const shortCount = (n: number): string => (n > 99 ? '99+' : String(n));
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export const windowTitle = (needs: number): string => (needs > 0 ? `(${needs}) Deskbell` : 'Deskbell');

/** What the hub does for nobody: who that was in full and in a word or two, and how a call ended by it that nobody denied. */
interface ByHub { of: RegExp; full: string; brief: string; ends?: 'withdrawn' | 'expired' }
const byHub: readonly ByHub[] = [
  { of: /^default-on-expire$/, full: 'the deadline, which applied the default', brief: 'the deadline' },
  { of: /^expired$/, full: 'the deadline', brief: 'the deadline', ends: 'expired' },
  { of: /timeout|expired/, full: 'the hub, because nobody answered in time', brief: 'time ran out', ends: 'expired' },
  { of: /agent-(gone|disconnected)/, full: 'the hub, as the agent is no longer waiting', brief: 'no longer waiting', ends: 'withdrawn' },
  { of: /agent-stopped/, full: 'the hub, because you stopped the agent', brief: 'you, by a stop' },
  { of: /agent-revoked/, full: 'the hub, because you revoked the agent', brief: 'agent revoked' },
  { of: /session-closed/, full: 'the hub, as its session ended', brief: 'session ended', ends: 'withdrawn' },
  { of: /shutting-down/, full: 'the hub, which was closing', brief: 'hub closing', ends: 'withdrawn' },
  { of: /^(mailbox|hub)$/, full: 'the hub', brief: 'the hub' },
  { of: /^undeliverable$/, full: 'the hub, as it reaches nobody any more', brief: 'reaches nobody' },
];

function hubActor(actor: string): ByHub | undefined {
  if (!actor.startsWith('system:')) return undefined;
  const name = actor.slice(7).replaceAll('_', '-');
  return byHub.find((b) => b.of.test(name));
}

/** Who did it: "you", "deploybot/dev-team", "the deadline", "a rule". `brief`: where there is little room. */
export function who(actor: string, operator: string, brief = false): string {
  const hub = hubActor(actor);
  if (hub) return brief ? hub.brief : hub.full;
  const colon = actor.indexOf(':');
  if (colon < 0) return actor === operator ? 'you' : actor;
  const kind = actor.slice(0, colon);
  const name = actor.slice(colon + 1);
  if (kind === 'human') return name === operator || actor === operator ? 'you' : name;
  if (kind === 'rule') return 'a rule';
  if (kind === 'system') return `the hub (${name.replaceAll(/[-_]/g, ' ')})`;
  return name;
}

/** How a call ended by that actor where nobody denied it; undefined where somebody did. */
export const endBy = (actor: string): 'withdrawn' | 'expired' | undefined => hubActor(actor)?.ends;

/** A run by its name: what is called "run_7" already is not called "run run_7". */
export const runWords = (id: Text): Text => (/^run\b|^run_/i.test(plain(id)) ? id : [{ t: 'run ' }, ...id]);

export const humanActor = (operator: string): string => (operator.includes(':') ? operator : `human:${operator}`);

/** "retention_days" → "Retention days". */
export function words(key: string): string {
  const s = key.replaceAll(/[-_.]+/g, ' ').trim();
  return s.charAt(0).toUpperCase() + s.slice(1);
}

/** A part in whole percent, rounded down: what is not all of it is never 100. 0.29 is 28.999999999999996 hundredths. */
export const percentOf = (part: number): number => (part >= 1 ? 100 : Math.min(99, Math.floor(Math.max(0, part) * 100 + 1e-9)));
