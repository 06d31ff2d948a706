// The words of sessions of pi.
import { count } from './format';
import type { PiInfo, PiModel, PiState, PiUsage } from './pitypes';

export const stateWords: Record<PiState, string> = {
  starting: 'starting', idle: 'idle', running: 'at work', retrying: 'trying again soon', compacting: 'compacting', waiting: 'waits for you', stopping: 'ending', exited: 'ended',
};

export const working = (s: PiState): boolean => ['running', 'retrying', 'compacting', 'waiting'].includes(s);
export const lives = (s: PiState): boolean => s !== 'exited';

/** "12.4k tokens · $0.03": what something cost. */
export function usageWords(u: PiUsage): string {
  const tokens = u.total || u.input + u.output + u.cache_read + u.cache_write;
  const said = `${tokens >= 10_000 ? `${Math.round(tokens / 100) / 10}k` : count(tokens)} tokens`;
  return u.cost > 0 ? `${said} · $${u.cost < 0.01 ? u.cost.toFixed(4) : u.cost.toFixed(2)}` : said;
}

export function contextWords(c: NonNullable<PiInfo['context']>): string {
  return c.percent < 0 ? 'context not known yet' : `${c.percent.toFixed(c.percent < 10 ? 1 : 0)} % of the context`;
}

/** What is said of a session at work that nothing was heard of, for that many milliseconds; '' while that is nothing odd. */
export function quietWords(s: PiState, ms: number): string {
  if (ms < 120_000 || s === 'waiting' || !working(s)) return '';
  return `Nothing was heard of it for ${Math.floor(ms / 60_000)} minutes. It may be thinking, or stuck.`;
}

/** What ends with a session's process. */
export function endingWords(s: PiState): string {
  return working(s) ? 'It is at work: what it does now is broken off, and whatever it started and that still runs ends with it.' : 'Whatever it started and that still runs ends with it.';
}

/** The levels of thinking to choose from: pi's own word, or those that every pi has. None for a model that does not think. */
export function levelsOf(info: Pick<PiInfo, 'levels' | 'reasoning' | 'thinking'>): string[] {
  if (info.levels.length > 1) return info.levels.includes(info.thinking) || !info.thinking ? info.levels : [info.thinking, ...info.levels];
  if (!info.reasoning) return [];
  const all = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh'];
  return all.includes(info.thinking) || !info.thinking ? all : [...all, info.thinking];
}

/** A model by its whole name, as pi's --model takes it. */
export const modelName = (m: Pick<PiModel, 'provider' | 'id'>): string => `${m.provider}/${m.id}`;

/** The commands of pi's own terminal that are understood here. */
const ownCommands = {
  compact: 'Shorten what the model remembers', model: 'Choose the model', thinking: 'Choose how much it thinks', fork: 'Begin again at one of your prompts', new: 'Begin a new session',
  clone: 'Go on in a copy of this session', name: 'Name this session', export: 'Save it as HTML',
};

/** The commands that fit what is typed, the ones that begin with it first; none once there is a space. */
export function completions(typed: string, commands: PiInfo['commands']): PiInfo['commands'] {
  const name = /^\/(\S*)$/.exec(typed)?.[1]?.toLowerCase();
  if (name === undefined) return [];
  const own = Object.entries(ownCommands).map(([n, about]) => ({ name: n, description: [{ t: about }], source: 'pi' }));
  const all = [...commands, ...own.filter((o) => !commands.some((c) => c.name === o.name))];
  const fits = all.filter((c) => c.name.toLowerCase().includes(name));
  return fits.sort((a, b) => Number(b.name.toLowerCase().startsWith(name)) - Number(a.name.toLowerCase().startsWith(name))).slice(0, 8);
}

/** What somebody wrote as arguments of a command line: words apart by spaces, quotes keep them together. */
export function splitArgs(text: string): string[] {
  const out: string[] = [];
  for (const m of text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)) out.push(m[1]?.replaceAll(/\\(.)/g, '$1') ?? m[2] ?? m[3] ?? '');
  return out;
}
