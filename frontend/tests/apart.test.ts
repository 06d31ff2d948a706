import { describe, expect, it } from 'vitest';
import { optionName, unclear } from '../src/lib/apart';
import { fields, spoken } from '../src/lib/schemaform';

describe('labels that do not tell apart', () => {
  it.each<[string[], boolean[]]>([
    [['Yes', 'No'], [false, false]], [['Yes', 'Yes', 'No'], [true, true, false]], [['', 'No'], [true, false]], [['  ', 'No'], [true, false]],
    [['Yes', ' Yes  '], [true, true]], [['Go  on', 'Go on'], [true, true]], [['Yes', 'Ｙes'], [true, true]], [['Yes', 'yes'], [false, false]], [['а', 'a'], [true, true]], [['Да сосо', 'Да coco'], [true, true]], [['shıp', 'ship'], [true, true]],
    [['Yes', 'Yes\u200b'], [false, false]], [['\u200b', '\u200b'], [true, true]],
  ])('%j', (labels, want) => expect(unclear(labels)).toEqual(want));

  it('are called by their values too', () => {
    const options = [{ value: 'keep', label: [{ t: 'Go' }] }, { value: 'drop\u202e', label: [{ t: 'Go' }] }, { value: 'x', label: [{ t: 'Stop' }] }, { value: 'y', label: [] }];
    expect(options.map((o) => optionName(o, options))).toEqual(['Go (keep)', 'Go (drop[right-to-left override])', 'Stop', '(y)']);
  });
  it('are spelled out where their values read alike too', () => {
    const options = ['caf\u00e9', 'cafe\u0301', 'ok', 'ok '].map((value) => ({ value, label: [{ t: 'Go' }] }));
    expect(options.map((o) => optionName(o, options))).toEqual(['Go ("caf\\u00e9")', 'Go ("cafe\\u0301")', 'Go ("ok")', 'Go ("ok ")']);
  });
  it('in a form show JSON', () => {
    const [f] = fields({ properties: { x: { enum: ['1', 1, 'two'] } } });
    expect(f?.choices?.map((c) => c.shows)).toEqual(['"1"', '1', undefined]);
    expect(f && [spoken(f, '0'), spoken(f, '1'), spoken(f, '2')]).toEqual(['1 ("1")', '1 (1)', 'two']);
    const [g] = fields({ properties: { x: { type: 'array', items: { oneOf: [{ const: 'a', title: 'Go' }, { const: 'b', title: 'Go' }, { const: 'c', title: '' }] } } } });
    expect(g?.choices?.map((c) => c.shows)).toEqual(['"a"', '"b"', '"c"']);
  });
});
