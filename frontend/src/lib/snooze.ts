// The moments offered for snoozing, as a person means them: a working morning, not "in 14 hours".

export interface Snooze { label: string; at: number }

export function snoozes(now: number): Snooze[] {
  const at = (days: number, hour: number): number => {
    const d = new Date(now);
    return new Date(d.getFullYear(), d.getMonth(), d.getDate() + days, hour).getTime();
  };
  const toMonday = ((8 - new Date(now).getDay()) % 7) || 7;
  const list: Snooze[] = [
    { label: 'In 20 minutes', at: now + 20 * 60_000 },
    { label: 'In an hour', at: now + 60 * 60_000 },
  ];
  if (at(0, 18) > now + 90 * 60_000) list.push({ label: 'This evening', at: at(0, 18) });
  list.push({ label: 'Tomorrow', at: at(1, 9) });
  if (toMonday > 1) list.push({ label: 'Next week', at: at(toMonday, 9) });
  return list;
}
