// Where the agents of the network stand in its drawing: children right of their parents, each beside its own.
import type { Network } from './talktypes';

export const NODE = { width: 168, height: 34 } as const;
const GAP = { x: 56, y: 10 } as const;
const EDGE = 8;
const ASIDE = 8; // how far a relationship is from the edge of a parent

export interface Node { id: string; x: number; y: number }
/** `path` is an SVG path. It goes from column to column; within one it bows out to the right. */
export interface Line { from: string; to: string; type: string; path: string }
export interface Drawing { nodes: Node[]; lines: Line[]; width: number; height: number }

/** Draws everybody once, whatever they say of their parents. */
export function draw(net: Pick<Network, 'agents' | 'edges'>): Drawing {
  const children = new Map<string, string[]>();
  const known = new Set(net.agents.map((a) => a.id));
  for (const a of net.agents) if (known.has(a.parent) && a.parent !== a.id) children.set(a.parent, [...(children.get(a.parent) ?? []), a.id]);
  const at = new Map<string, Node>();
  let row = 0;
  let deepest = 0;
  const place = (id: string, depth: number): number => {
    deepest = Math.max(deepest, depth);
    const node = { id, x: EDGE + depth * (NODE.width + GAP.x), y: 0 };
    at.set(id, node);
    const below: number[] = [];
    for (const child of children.get(id) ?? []) if (!at.has(child)) below.push(place(child, depth + 1));
    const [first, last] = [below[0], below.at(-1)];
    node.y = first === undefined || last === undefined ? EDGE + row++ * (NODE.height + GAP.y) : (first + last) / 2;
    return node.y;
  };
  const roots = net.agents.filter((a) => !known.has(a.parent) || a.parent === a.id);
  for (const a of [...roots, ...net.agents]) if (!at.has(a.id)) place(a.id, 0); // the others are parents of each other
  const lines: Line[] = [];
  let bow = 0;
  for (const e of net.edges) {
    const [from, to] = [at.get(e.from), at.get(e.to)];
    if (!from || !to || from === to) continue;
    const aside = e.type === 'parent-child' ? 0 : ASIDE;
    const [fy, ty] = [from.y + NODE.height / 2 + aside, to.y + NODE.height / 2 + aside];
    if (to.x !== from.x) {
      const [fx, tx] = to.x > from.x ? [from.x + NODE.width, to.x] : [from.x, to.x + NODE.width];
      lines.push({ ...e, path: `M${fx} ${fy}C${(fx + tx) / 2} ${fy} ${(fx + tx) / 2} ${ty} ${tx} ${ty}` });
    } else {
      bow = GAP.x - 12;
      const [fx, tx] = [from.x + NODE.width, to.x + NODE.width];
      const out = Math.max(fx, tx) + bow;
      lines.push({ ...e, path: `M${fx} ${fy}C${out} ${fy} ${out} ${ty} ${tx} ${ty}` });
    }
  }
  return { nodes: net.agents.map((a) => at.get(a.id) as Node), lines, width: 2 * EDGE + (deepest + 1) * NODE.width + deepest * GAP.x + bow, height: 2 * EDGE + Math.max(0, row * (NODE.height + GAP.y) - GAP.y) };
}
