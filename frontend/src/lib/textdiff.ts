// Two texts, line by line, as a diff. Lines are compared with what hides in them, so nothing unseen counts as equal.
import { count } from './format';
import type { DiffLine } from './guardtypes';
import type { Text } from './types';

/** Above this many comparisons the changed middle is shown as taken out and put in, whole. */
const MOST = 400_000;

/** A text cut at its line breaks; a marked stretch stays whole. */
export function lines(text: Text): Text[] {
  const out: Text[] = [[]];
  for (const span of text) {
    if (span.m) {
      out.at(-1)?.push(span);
      continue;
    }
    span.t.split('\n').forEach((t, i) => {
      if (i > 0) out.push([]);
      if (t !== '') out.at(-1)?.push({ ...span, t });
    });
  }
  return out;
}

const name = (line: Text): string => line.map((s) => `${s.m ?? ''}\u0000${s.t}`).join('\u0001');

export function textDiff(from: Text, to: Text): DiffLine[] {
  const a = lines(from);
  const b = lines(to);
  const an = a.map(name);
  const bn = b.map(name);
  let head = 0;
  while (head < a.length && head < b.length && an[head] === bn[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && an[a.length - 1 - tail] === bn[b.length - 1 - tail]) tail++;
  const out: DiffLine[] = [];
  const same = (i: number, j: number) => out.push({ op: ' ', text: a[i] ?? [], old: i + 1, new: j + 1 });
  const gone = (i: number) => out.push({ op: '-', text: a[i] ?? [], old: i + 1 });
  const come = (j: number) => out.push({ op: '+', text: b[j] ?? [], new: j + 1 });
  for (let i = 0; i < head; i++) same(i, i);
  middle(an.slice(head, a.length - tail), bn.slice(head, b.length - tail), {
    same: (i, j) => same(head + i, head + j), gone: (i) => gone(head + i), come: (j) => come(head + j),
  });
  for (let k = tail; k > 0; k--) same(a.length - k, b.length - k);
  return out;
}

interface Sink { same: (i: number, j: number) => void; gone: (i: number) => void; come: (j: number) => void }

/** The longest common subsequence of what differs, told in order. */
function middle(a: string[], b: string[], tell: Sink): void {
  const m = b.length + 1;
  const reach = a.length * b.length <= MOST ? new Uint32Array((a.length + 1) * m) : null;
  if (reach) {
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        reach[i * m + j] = a[i] === b[j] ? (reach[(i + 1) * m + j + 1] ?? 0) + 1 : Math.max(reach[(i + 1) * m + j] ?? 0, reach[i * m + j + 1] ?? 0);
      }
    }
  }
  let i = 0;
  let j = 0;
  while (reach && i < a.length && j < b.length) {
    if (a[i] === b[j]) tell.same(i++, j++);
    else if ((reach[(i + 1) * m + j] ?? 0) >= (reach[i * m + j + 1] ?? 0)) tell.gone(i++);
    else tell.come(j++);
  }
  while (i < a.length) tell.gone(i++);
  while (j < b.length) tell.come(j++);
}

/** How much changed, in words: "2 lines added, 1 removed". `does`: what becomes of the file besides. */
export function changeWords(added: number, removed: number, does = ''): string {
  const line = (n: number) => `${count(n)} ${n === 1 ? 'line' : 'lines'}`;
  const said = added && removed ? `${line(added)} added, ${count(removed)} removed` : added ? `${line(added)} added` : removed ? `${line(removed)} removed` : '';
  return [does, said].filter(Boolean).join(': ') || 'nothing changed';
}

/** The same of a diff that is all there. */
export const diffWords = (diff: readonly DiffLine[]): string => changeWords(diff.filter((l) => l.op === '+').length, diff.filter((l) => l.op === '-').length);
