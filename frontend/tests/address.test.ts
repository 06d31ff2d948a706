import { describe, expect, it, vi } from 'vitest';

vi.mock('../src/lib/reader.svelte', () => ({ reader: {} }));
vi.mock('../src/lib/inbox.svelte', () => ({ inbox: {} }));

import { address, parseAddress } from '../src/lib/address.svelte';

describe('address', () => {
  it('goes there and back', () => {
    for (const place of [{ view: 'needs', id: 'msg_a/b' }, { view: 'agents', id: null }, { view: 'agents', id: 'a/b#é' }, { view: 'fleet', id: 'msg_1' }, { view: 'sent', id: null }, { view: 'guardian', id: 'acs/5c3f' }, { view: 'rules', id: 'rule_1' }] as const) expect(parseAddress(address(place))).toEqual(place);
  });
  it('takes no nonsense', () => {
    for (const hash of ['', '#ticket=x', '#/nowhere/1']) expect(parseAddress(hash)).toBeNull();
    expect(parseAddress('#/sent/x')).toEqual({ view: 'sent', id: null });
    expect(parseAddress('#/needs/%E0%A4%A')).toEqual({ view: 'needs', id: null });
  });
});
