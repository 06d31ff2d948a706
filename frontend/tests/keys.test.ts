import { describe, expect, it } from 'vitest';
import { caps, chord, commands, KeyReader, takesText, type KeyPress } from '../src/lib/keys';

function press(key: string, more: Partial<KeyPress> = {}): KeyPress {
  const code = /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : /^\d$/.test(key) ? `Digit${key}` : key;
  return { key, code, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, repeat: false, isComposing: false, ...more };
}
const free = { typing: false, dialog: false };
const id = (m: ReturnType<KeyReader['press']>) => (m === null || m === 'pending' ? m : m.command.id);

describe('chord', () => {
  it('reads Latin layouts as printed', () => {
    expect(chord(press('j'))).toBe('j');
    expect(chord(press('?', { code: 'Slash', shiftKey: true }))).toBe('?');
    expect(chord(press('/', { code: 'Digit7', shiftKey: true }))).toBe('/'); // German
    expect(chord(press('J', { code: 'KeyJ' }))).toBe('j'); // caps lock
  });
  it('falls back to where the key sits', () => {
    expect(chord(press('о', { code: 'KeyJ' }))).toBe('j'); // Russian
    expect(chord(press('ת', { code: 'Comma' }))).toBe('ת');
    expect(chord(press('&', { code: 'Digit1' }))).toBe('1'); // French, unshifted
    expect(chord(press('١', { code: 'Digit1' }))).toBe('1'); // Arabic
  });
  it('takes no letter with shift or alt, nor a dead key', () => {
    expect(chord(press('D', { code: 'KeyD', shiftKey: true }))).toBeNull();
    expect(chord(press('d', { altKey: true }))).toBeNull();
    expect(chord(press('Dead'))).toBeNull();
    expect(chord(press('!', { code: 'Digit1', shiftKey: true }))).toBe('!');
    expect(chord(press('End', { code: 'Numpad1' }))).toBe('End');
  });
  it('knows both modifiers', () => {
    expect(chord(press('k', { ctrlKey: true }))).toBe('Mod+k');
    expect(chord(press('Enter', { metaKey: true }))).toBe('Mod+Enter');
    expect(chord(press('1', { ctrlKey: true }))).toBe('Mod+1');
  });
});

describe('KeyReader', () => {
  it('answers a number with choose and its digit', () => {
    expect(new KeyReader().press(press('2'), free, 10)).toMatchObject({ command: { id: 'choose' }, key: '2' });
  });
  it('reads sequences, and forgets them', () => {
    const r = new KeyReader();
    expect(r.press(press('g'), free, 100)).toBe('pending');
    r.release('KeyG', 150, false);
    expect(id(r.press(press('d'), free, 200))).toBe('go-done');
    r.release('KeyD', 250, false);
    expect(r.press(press('g'), free, 1000)).toBe('pending');
    r.release('KeyG', 1050, false);
    expect(id(r.press(press('d'), free, 9000))).toBe('decline'); // too late: not a sequence any more
  });
  it('lets a sequence with no end do what the second key does alone', () => {
    const r = new KeyReader();
    r.press(press('g'), free, 100);
    expect(id(r.press(press('j'), free, 200))).toBe('next');
  });
  it('repeats moving but never deciding', () => {
    const r = new KeyReader();
    expect(id(r.press(press('j', { repeat: true }), free, 10))).toBe('next');
    expect(r.press(press('1', { repeat: true }), free, 20)).toBeNull();
  });
  it('sees a held key that the toolkit does not call a repetition', () => {
    const r = new KeyReader();
    expect(id(r.press(press('1'), free, 1000))).toBe('choose');
    expect(r.press(press('1'), free, 1500)).toBeNull(); // no keyup in between
    r.release('Digit1', 1600, false);
    expect(r.press(press('1'), free, 1605)).toBeNull(); // a keyup that autorepeat made
    r.release('Digit1', 1700, false);
    expect(id(r.press(press('1'), free, 1900))).toBe('choose');
  });
  it('starts afresh when the window lost the keyups', () => {
    const r = new KeyReader();
    r.press(press('1'), free, 1000);
    r.reset();
    expect(id(r.press(press('1'), free, 2000))).toBe('choose');
  });
  it('leaves typing alone, but for what says otherwise', () => {
    const typing = { typing: true, dialog: false };
    const r = new KeyReader();
    expect(r.press(press('j'), typing, 1)).toBeNull();
    expect(r.press(press('1'), typing, 2)).toBeNull();
    expect(r.press(press('g'), typing, 3)).toBeNull();
    expect(id(r.press(press('Escape'), typing, 4))).toBe('back');
    expect(id(r.press(press('Enter', { ctrlKey: true }), typing, 5))).toBe('send');
    expect(id(r.press(press('k', { ctrlKey: true }), typing, 6))).toBe('palette');
    expect(r.press(press('z', { ctrlKey: true }), typing, 7)).toBeNull(); // the field's own undo
  });
  it('does nothing during composition', () => {
    const r = new KeyReader();
    expect(r.press(press('1', { isComposing: true }), free, 1)).toBeNull();
    expect(r.press(press('1', { keyCode: 229 }), free, 2)).toBeNull();
  });
  it('decides nothing over a dialog', () => {
    const dialog = { typing: false, dialog: true };
    const r = new KeyReader();
    for (const key of ['1', 'd', 'e', 'j', 'Enter']) expect(r.press(press(key), dialog, 1)).toBeNull();
    expect(id(r.press(press('?', { code: 'Slash', shiftKey: true }), dialog, 2))).toBe('help');
  });
});

describe('the table', () => {
  it('gives no key twice', () => {
    const keys = commands.flatMap((c) => c.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });
  it('lets nothing that decides repeat', () => {
    expect(commands.filter((c) => c.group === 'Decide' && c.repeats)).toEqual([]);
  });
  it('decides nothing by a plain Enter or Space', () => {
    expect(commands.filter((c) => c.group === 'Decide').flatMap((c) => c.keys)).not.toContain('Enter');
    expect(commands.flatMap((c) => c.keys)).not.toContain(' ');
  });
  it('draws caps', () => {
    expect(caps('g n')).toEqual(['g', 'n']);
    expect(caps('Mod+Enter')).toEqual(['Ctrl', '↵']);
    expect(caps('Mod+k')).toEqual(['Ctrl', 'K']);
  });
});

it('knows what takes text', () => {
  expect(takesText({ tagName: 'TEXTAREA' })).toBe(true);
  expect(takesText({ tagName: 'INPUT', type: 'password' })).toBe(true);
  expect(takesText({ tagName: 'INPUT', type: 'checkbox' })).toBe(false);
  expect(takesText({ tagName: 'SELECT' })).toBe(true);
  expect(takesText({ tagName: 'DIV', isContentEditable: true })).toBe(true);
  expect(takesText({ tagName: 'BUTTON' })).toBe(false);
  expect(takesText(null)).toBe(false);
});
