import { expect, it } from 'vitest';
import type { Match } from '../src/lib/guardtypes';
import { apart, facts } from '../src/lib/offerwords';

const common: Match = { tool: 'Bash', arguments: [{ name: 'command', op: 'is', value: 'ls \u200b' }, { name: 'path', op: 'within', value: '/a' }], only: true, platform: 'claude-code', protocol: 'acs' };

it('says what two rules have in common once, and of each what is its own', () => {
  const { common: shared, own } = apart([{ match: { ...common, session: 's1' }, aside: '“timeout” does not count' }, { match: { ...common, folder: '/home/maria' }, aside: '“timeout” does not count' }]);
  expect(shared).toEqual([
    { label: 'Tool', value: 'Bash' }, { label: 'command', value: 'ls \u200b', how: 'exactly' }, { label: 'path', value: '/a', how: 'is a path in' },
    { label: 'Arguments', value: '', how: 'no others (“timeout” does not count)' }, { label: 'Program', value: 'claude-code' }, { label: 'Protocol', value: 'acs' },
  ]);
  expect(own).toEqual([[{ label: 'Session', value: 's1' }], [{ label: 'Folder', value: '/home/maria', how: 'or below it' }]]);
});

it('leaves nothing out that a rule holds', () => {
  const all: Required<Match> = { protocol: 'p', platform: 'q', agent: 'a*', addressee: 'b', folder: 'f', session: 's', tool: 't*', provider: 'w', version: 'v', only: true, arguments: [], hours: { from: '09:00', to: '18:00', days: [1] } };
  expect(facts(all)).toHaveLength(Object.keys(all).length - 1); // of the arguments there are none
  expect(facts(all)).toContainEqual({ label: 'Arguments', value: '', how: 'none' });
  expect(apart([{ match: common }]).common).toEqual([]);
});
