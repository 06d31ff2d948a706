import { expect, it } from 'vitest';
import { picked, shownToPicker } from '../src/lib/moments';

it('sends what was picked with the offset of this place', () => {
  expect(picked('date', '2026-01-31')).toBe('2026-01-31');
  const at = picked('date-time', '2026-01-31T14:20');
  expect(at).toMatch(/^2026-01-31T14:20:00(Z|[+-]\d\d:\d\d)$/);
  expect(new Date(at).getTime()).toBe(new Date(2026, 0, 31, 14, 20).getTime());
  expect(picked('time', '14:20')).toMatch(/^14:20:00(Z|[+-]\d\d:\d\d)$/);
});

it('begins the picker with what is written, where that can be read', () => {
  expect(shownToPicker('date-time', picked('date-time', '2026-01-31T14:20:05'))).toBe('2026-01-31T14:20:05');
  expect(shownToPicker('time', '14:20:00Z')).toBe('14:20:00');
  expect(shownToPicker('date', '2026-01-31')).toBe('2026-01-31');
  for (const kind of ['date', 'time', 'date-time'] as const) expect(shownToPicker(kind, 'soon')).toBe('');
});
