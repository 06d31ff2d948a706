// An agent that speaks ACP by HTTP: enough of one to test the page with.
export class Acp {
  /** A principal of that name. */
  static async start(hub, id) {
    const { token } = await hub.call('POST', '/v1/agents', { agent_id: id });
    return Object.assign(new Acp(), { hub, id, token, n: 0 });
  }

  async call(method, params = {}, signal) {
    const r = await fetch(`${this.hub.url}/acp`, {
      method: 'POST', signal, headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${this.token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++this.n, method, params }),
    });
    const { result, error } = await r.json();
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async spawn(role, more = {}) { return (await this.call('agent.spawn', { role, ...more })).agentId; }

  /** What waits for it; it has it then. */
  async collect() {
    const { pending } = await this.call('heartbeat');
    await this.call('heartbeat', { ack: pending.map((d) => d.deliveryId) });
    return pending.map((d) => d.message);
  }
}

/** One of everything between agents of ACP. */
export async function crew(hub) {
  const boss = await Acp.start(hub, 'ops/boss');
  const hand = await Acp.start(hub, 'hand');
  const worker = await hand.spawn('Code reviewer');
  await hand.spawn('Linter', { parentId: worker });
  await hand.call('context.share', { fromAgent: worker, key: 'style', value: { indent: 'tabs', 'max\u200bwidth': 120 }, scope: 'persistent' });
  const task = (await boss.call('task.submit', { agentId: worker, prompt: 'Review the change\nand say what is wrong.', context: { branch: 'main' }, correlationId: 'c-1' })).messageId;
  await hand.call('task.progress', { agentId: worker, correlationId: 'c-1', chunk: 'read 4 of 10 files', progress: 0.4 });
  const query = (await hand.call('message.send', { from: worker, to: 'human', type: 'query', payload: { title: 'Which style?', options: ['tabs', 'spaces'] }, correlationId: 'q-1' })).messageId;
  await hub.call('PATCH', '/v1/settings', { 'acp.gate': 'all', 'acp.roles': { builder: ['make', 'all'] } });
  const gated = (await boss.call('tool.invoke', { agentId: worker, tool: 'shell', input: { command: 'rm -rf build' } })).messageId;
  return { boss, hand, worker, task, query, gated };
}
