// Between what a form sends (RFC 3339, with an offset) and what the system's pickers hold (local, without one).

export type Moment = 'date' | 'time' | 'date-time';
const two = (n: number): string => String(n).padStart(2, '0');

export const isMoment = (format: string | undefined): format is Moment => format === 'date' || format === 'time' || format === 'date-time';

/** The offset of this place at that moment: "+01:00", "Z". */
function offset(at: Date): string {
  const m = -at.getTimezoneOffset();
  return m === 0 ? 'Z' : `${m < 0 ? '-' : '+'}${two(Math.floor(Math.abs(m) / 60))}:${two(Math.abs(m) % 60)}`;
}
const withSeconds = (time: string): string => (/^\d\d:\d\d$/.test(time) ? `${time}:00` : time);

/** What was picked, as it is sent. */
export function picked(kind: Moment, value: string): string {
  if (kind === 'date') return value;
  if (kind === 'time') return withSeconds(value) + offset(new Date());
  const [day = '', time = ''] = value.split('T');
  const local = `${day}T${withSeconds(time)}`;
  return local + offset(new Date(local));
}

/** What the picker begins with: what is written, where it can be read. */
export function shownToPicker(kind: Moment, text: string): string {
  if (kind === 'date') return /^\d{4}-\d\d-\d\d$/.test(text) ? text : '';
  if (kind === 'time') return /^\d\d:\d\d(:\d\d)?/.exec(text)?.[0] ?? '';
  const at = new Date(text);
  if (text === '' || Number.isNaN(at.getTime())) return '';
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
