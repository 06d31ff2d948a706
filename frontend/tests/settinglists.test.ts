import { describe, expect, it } from 'vitest';
import { entryProblems, line, listForms, words } from '../src/lib/settinglists';

const form = (key: string) => {
  const f = listForms[key];
  if (!f) throw new Error(key);
  return f;
};

describe('entries of settings', () => {
  it.each([
    ['map.credentials', 'github:repo:write=GITHUB', ['github:repo:write', 'GITHUB', 'bearer_token']],
    ['map.credentials', 'a=b=AWS:aws_credentials', ['a=b', 'AWS', 'aws_credentials']],
    ['map.workspaces', 'agent:planner=/srv/a=b', ['agent:planner', '/srv/a=b']],
    ['map.peers', 'berlin=wss://h.example/map secret:PEER', ['berlin', 'wss://h.example/map', 'PEER']],
    ['map.peers', 'berlin=wss://h.example/map?a=b', ['berlin', 'wss://h.example/map?a=b', '']],
    ['acp.roles', ['r', ['python3', 'a b.py', 'it\'s', '']], ['r', 'python3 "a b.py" "it\'s" ""', 'words']],
    ['acp.roles', ['b', ['/bin/sh', '-c', 'make && echo "x"']], ['b', 'make && echo "x"', 'shell']],
  ])('%s: %j is taken apart and put together again', (key, entry, parts) => {
    expect(form(key).parts(entry)).toEqual(parts);
    expect(form(key).entry(parts)).toEqual(entry);
  });
  it('of a map are its members', () => {
    const roles = { a: ['x'], b: ['y', 'z'] };
    expect(form('acp.roles').value(form('acp.roles').entries(roles))).toEqual(roles);
  });
});

describe('what is wrong with an entry', () => {
  const wrong = (key: string, parts: string[], others: unknown[] = []) => Object.keys(entryProblems(form(key), parts, others));
  it.each([
    ['map.credentials', ['', 'X', 'api_key'], ['scope']], ['map.credentials', ['s', 'a b', 'api_key'], ['secret']], ['map.credentials', ['s', 'X', 'api_key'], []],
    ['map.workspaces', ['a', 'src'], ['folder']], ['map.workspaces', ['a=b', '/x'], ['agent']], ['map.workspaces', ['agent:x', '/x'], []],
    ['map.peers', ['a b', 'wss://x/map', ''], ['system']], ['map.peers', ['a', 'ws://x/map', ''], ['url']], ['map.peers', ['a', 'ws://127.0.0.1:1/map', ''], []], ['map.peers', ['a', 'wss://x/map', '?'], ['secret']],
    ['acp.roles', ['r', 'a "b', 'words'], ['command']], ['acp.roles', ['r', 'a "b', 'shell'], []],
  ])('%s %j: %j', (key, parts, keys) => expect(wrong(key, parts)).toEqual(keys));
  it('is that it is there already', () => {
    expect(wrong('map.workspaces', ['a', '/y'], ['a=/x'])).toEqual(['agent']);
    expect(wrong('acp.roles', ['r', 'x', 'words'], [['r', ['y']]])).toEqual(['role']);
  });
});

describe('words of a command', () => {
  it.each([['a b  c', ['a', 'b', 'c']], ['"a b" c', ['a b', 'c']], ["'a \\ b'", ['a \\ b']], ['a\\ b', ['a b']], ['"\\"x"', ['"x']], ['""', ['']], ['', []], ['--x="a b"', ['--x=a b']]])('%s', (text, want) => expect(words(text)).toEqual(want));
  it.each([[['a', 'b c', '', '"', "'", '\\', 'tab\there']], [['$HOME', '*', '--x=1']]])('%j are read back from their line', (all) => expect(words(line(all))).toEqual(all));
});
