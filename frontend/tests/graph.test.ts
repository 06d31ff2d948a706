import { describe, expect, it } from 'vitest';
import { draw, NODE } from '../src/lib/graph';
import type { NetworkAgent } from '../src/lib/talktypes';

const agent = (id: string, parent = ''): NetworkAgent => ({ id, agent_id: `map/${id}`, name: [{ t: id }], role: [], state: 'idle', parent, connected: true, proved: false });
const edge = (from: string, to: string, type = 'parent-child') => ({ from, to, type });

describe('draw', () => {
  it('puts children right of their parents, and nobody onto another', () => {
    const agents = [agent('a'), agent('b', 'a'), agent('c', 'a'), agent('d', 'c'), agent('e')];
    const { nodes, lines, width, height } = draw({ agents, edges: [edge('a', 'b'), edge('a', 'c'), edge('c', 'd')] });
    const at = Object.fromEntries(nodes.map((n) => [n.id, n]));
    expect(nodes.map((n) => n.id)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(at['b']?.x).toBeGreaterThan((at['a']?.x ?? 0) + NODE.width);
    expect(at['d']?.x).toBeGreaterThan((at['c']?.x ?? 0) + NODE.width);
    expect(at['e']?.x).toBe(at['a']?.x);
    for (const n of nodes) {
      for (const m of nodes) if (n !== m && n.x === m.x) expect(Math.abs(n.y - m.y)).toBeGreaterThanOrEqual(NODE.height);
      expect(n.x + NODE.width).toBeLessThanOrEqual(width);
      expect(n.y + NODE.height).toBeLessThanOrEqual(height);
    }
    expect(lines).toHaveLength(3);
  });
  it('draws those once who are parents of each other or of themselves', () => {
    const { nodes, lines } = draw({ agents: [agent('a', 'b'), agent('b', 'a'), agent('c', 'c')], edges: [edge('a', 'b'), edge('b', 'a'), edge('c', 'c')] });
    expect(new Set(nodes.map((n) => `${n.x} ${n.y}`)).size).toBe(3);
    expect(lines).toHaveLength(2);
  });
  it('leaves out what leads to nobody, and draws nothing of nothing', () => {
    expect(draw({ agents: [agent('a', 'gone')], edges: [edge('a', 'gone', 'peer')] }).lines).toEqual([]);
    expect(draw({ agents: [], edges: [] })).toEqual({ nodes: [], lines: [], width: 184, height: 16 });
  });
  it('has room for relationships beside the agents', () => {
    const { lines, width } = draw({ agents: [agent('a'), agent('b')], edges: [edge('a', 'b', 'peer')] });
    const most = Math.max(...(lines[0]?.path.match(/[\d.]+/g) ?? []).map(Number));
    expect(lines[0]?.type).toBe('peer');
    expect(most).toBeLessThanOrEqual(width);
  });
});
