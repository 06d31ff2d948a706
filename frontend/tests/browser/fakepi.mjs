#!/usr/bin/env node
// A pi that does what it is told: "ASK {request}" asks, "RUN text" runs a tool that says the text, anything else is answered.
import { createInterface } from 'node:readline';

const say = (r) => process.stdout.write(`${JSON.stringify(r)}\n`);
const text = (t) => [{ type: 'text', text: t }];
let calls = 0;
let waiting = new Map();

function message(role, content, more = {}) {
  say({ type: 'message_start', message: { role, content: role === 'assistant' ? [] : content } });
  if (role === 'assistant') for (const [i, b] of content.entries()) if (b.text) say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: i, delta: b.text } });
  say({ type: 'message_end', message: { role, content, provider: 'stub', model: 'stub-1', stopReason: 'stop', usage: { input: 100, output: 20, totalTokens: 120, cost: { total: 0.0123 } }, ...more } });
}
function settle() {
  say({ type: 'agent_end', messages: [] });
  say({ type: 'agent_settled' });
}
function tool(args, result, details, isError = false) {
  const id = `call-${++calls}`;
  say({ type: 'tool_execution_start', toolCallId: id, toolName: 'bash', args });
  if (result !== undefined) say({ type: 'tool_execution_end', toolCallId: id, toolName: 'bash', result: { content: text(result), details }, isError, durationMs: 1234 });
  return id;
}
function prompt(words) {
  say({ type: 'agent_start' });
  message('user', text(words));
  const ask = /^ASK (.*)$/m.exec(words)?.[1];
  const run = /^RUN ([^]*)$/m.exec(words)?.[1];
  if (ask) {
    const id = `u${calls}`;
    waiting.set(id, tool({ command: 'rm -rf build' }));
    say({ ...JSON.parse(ask), type: 'extension_ui_request', id });
    return;
  }
  if (words === 'SLOW') return; // until it is stopped
  if (run) tool({ command: 'echo' }, run, { diff: '@@ -1 +1 @@\n-one\n+two' });
  message('assistant', [{ type: 'thinking', thinking: 'Let me **think**.' }, { type: 'text', text: `You said: **${words}** <img src=x onerror=alert(1)>` }]);
  settle();
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const c = JSON.parse(line);
  const ok = (data) => say({ id: c.id, type: 'response', command: c.type, success: true, data });
  if (c.type === 'extension_ui_response') {
    const call = waiting.get(c.id);
    if (call === undefined) return;
    waiting.delete(c.id);
    say({ type: 'tool_execution_end', toolCallId: call, toolName: 'bash', result: { content: text(JSON.stringify(c)) }, isError: c.confirmed !== true });
    settle();
  } else if (c.type === 'get_state') ok({ sessionId: `pi-${process.pid}`, sessionFile: '/tmp/none.jsonl', thinkingLevel: 'low', model: { provider: 'stub', id: 'stub-1', input: ['text', 'image'], contextWindow: 1000 }, messageCount: 0 });
  else if (c.type === 'get_commands') ok({ commands: [{ name: 'fix-tests', description: 'Mend them', source: 'extension' }] });
  else if (c.type === 'get_session_stats') ok({ tokens: { input: 100, output: 20, total: 120 }, cost: 0.0123, contextUsage: { tokens: 120, contextWindow: 1000, percent: 12 } });
  else if (c.type === 'abort') { settle(); ok(); } else if (c.type === 'prompt') { ok(); prompt(c.message); } else ok({});
}).on('close', () => process.exit(0));
