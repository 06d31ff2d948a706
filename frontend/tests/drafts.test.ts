import { describe, expect, it } from 'vitest';
import { Drafts } from '../src/lib/drafts.svelte';
import { fields } from '../src/lib/schemaform';

const fs = fields({ properties: { host: { type: 'string', default: 'here' }, pw: { type: 'string', 'x-ma2h-sensitive': true } } });

describe('drafts', () => {
  it('are kept per item', () => {
    const d = new Drafts();
    d.of('a').answer = 'half an ans';
    d.of('b').comment = 'because';
    expect(d.of('a').answer).toBe('half an ans');
    expect(d.of('b').answer).toBe('');
    expect([d.has('a'), d.has('b'), d.has('c')]).toEqual([true, true, false]);
  });
  it('survive the form being made again', () => {
    const d = new Drafts();
    d.of('a').prepare(fs);
    d.of('a').values['.host'] = 'there';
    d.of('a').prepare(fs);
    expect(d.of('a').values['.host']).toBe('there');
  });
  it('never hold a secret', () => {
    const d = new Drafts();
    d.of('a').prepare(fs);
    expect(Object.keys(d.of('a').values)).toEqual(['.host']);
  });
  it('forget a decline that was not confirmed, not the words', () => {
    const d = new Drafts();
    d.of('a').editor = 'decline';
    d.of('a').comment = 'why';
    d.leave('a');
    expect([d.of('a').editor, d.of('a').comment]).toEqual([null, 'why']);
    d.of('a').args = new Map([['command', 'ls']]);
    d.of('a').editor = 'review';
    d.leave('a');
    expect([d.of('a').editor, d.of('a').args]).toEqual(['arguments', new Map([['command', 'ls']])]);
    expect(d.of('a').written).toContainEqual({ label: 'command', text: 'ls' });
    d.of('a').editor = 'answer';
    d.leave('a');
    expect(d.of('a').editor).toBe('answer');
  });
  it('are dropped when the item is decided', () => {
    const d = new Drafts();
    d.of('a').answer = 'x';
    d.drop('a');
    expect(d.has('a')).toBe(false);
  });
});
