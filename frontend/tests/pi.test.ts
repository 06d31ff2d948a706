import { describe, expect, it } from 'vitest';
import { completions, contextWords, endingWords, levelsOf, quietWords, splitArgs, usageWords } from '../src/lib/piwords';

const usage = { input: 10, output: 5, cache_read: 0, cache_write: 0, total: 0, cost: 0 };

describe('the words of sessions of pi', () => {
  it('says what something cost', () => {
    expect(usageWords(usage)).toBe('15 tokens');
    expect(usageWords({ ...usage, total: 12_345, cost: 0.031 })).toBe('12.3k tokens · $0.03');
    expect(usageWords({ ...usage, cost: 0.0004 })).toContain('$0.0004');
    expect(contextWords({ tokens: -1, window: 10, percent: -1 })).toBe('context not known yet');
    expect(contextWords({ tokens: 1, window: 10, percent: 42.4 })).toBe('42 % of the context');
  });

  it('completes commands, and nothing once there is an argument', () => {
    const commands = [{ name: 'fix', description: [], source: 'extension' }, { name: 'compact', description: [], source: 'prompt' }];
    expect(completions('/', commands).map((c) => c.name)).toContain('fix');
    expect(completions('/co', commands).map((c) => `${c.name} ${c.source}`)).toEqual(['compact prompt']);
    expect(completions('/x', commands).map((c) => c.name)).toEqual(['fix', 'export']);
    expect(completions('/fix it', commands)).toEqual([]);
    expect(completions('fix', commands)).toEqual([]);
  });

  it('offers the levels of thinking that pi names, or else those that every pi has', () => {
    expect(levelsOf({ levels: ['off', 'max'], reasoning: true, thinking: 'max' })).toEqual(['off', 'max']);
    expect(levelsOf({ levels: ['off', 'max'], reasoning: true, thinking: 'low' })).toEqual(['low', 'off', 'max']);
    expect(levelsOf({ levels: ['off'], reasoning: false, thinking: 'off' })).toEqual([]);
    expect(levelsOf({ levels: [], reasoning: true, thinking: 'odd' })).toEqual(['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'odd']);
  });

  it('says when nothing was heard for long of one that is at work', () => {
    expect(quietWords('running', 119_000)).toBe('');
    expect(quietWords('running', 185_000)).toContain('for 3 minutes');
    for (const s of ['waiting', 'idle', 'exited'] as const) expect(quietWords(s, 185_000)).toBe('');
  });

  it('says what ends with a session that is ended', () => {
    expect(endingWords('waiting')).toContain('broken off');
    expect(endingWords('idle')).not.toContain('broken off');
    for (const s of ['running', 'idle'] as const) expect(endingWords(s)).toMatch(/whatever it started and that still runs ends with it/i);
  });

  it('splits arguments as a shell would', () => {
    expect(splitArgs(`--model a/b  --name "my \\"own\\" one" 'x y' ""`)).toEqual(['--model', 'a/b', '--name', 'my "own" one', 'x y', '']);
    expect(splitArgs('  ')).toEqual([]);
  });
});
