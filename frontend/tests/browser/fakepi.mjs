#!/usr/bin/env node
// A pi that does what it is told: "ASK {request}" asks, "SHOW {request}" shows something, "RUN text" runs a tool that says the
// text, "LINES n" runs one that says n lines and goes on, "PICTURE" answers with a picture, "RETRY" fails first, "MANY n" answers n times, "TALL n" with answers of many sizes, "STREAM n" with n pieces, a thousand a second; what comes while it works waits until it is stopped; anything else is answered. It keeps
// what it is told in no file, but can be forked; "--session" takes up a session of its own making.
import { createInterface } from 'node:readline';
import { crc32, deflateSync } from 'node:zlib';

const say = (r) => process.stdout.write(`${JSON.stringify(r)}\n`);
const text = (t) => [{ type: 'text', text: t }];
let calls = 0;
let waiting = new Map();
let busy = false;
let queue = [];
let prompts = [];
let forks = 0;
let model = 'stub-1';
let level = 'low';
const all = [{ provider: 'stub', id: 'stub-1', reasoning: true, input: ['text', 'image'] }, { provider: 'stub', id: 'stub-2', reasoning: true, input: ['text'] }];
const now = () => ({ ...all.find((m) => m.id === model), contextWindow: 1000 });
const taken = process.argv.includes('--session') ? process.argv[process.argv.indexOf('--session') + 1] : undefined;

function message(role, content, more = {}) {
  say({ type: 'message_start', message: { role, content: role === 'assistant' ? [] : content } });
  if (role === 'assistant') for (const [i, b] of content.entries()) if (b.text) say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: i, delta: b.text } });
  say({ type: 'message_end', message: { role, content, provider: 'stub', model: 'stub-1', stopReason: 'stop', usage: { input: 100, output: 20, totalTokens: 120, cost: { total: 0.0123 } }, ...more } });
}
/** A picture of one colour. */
function picture(width, height) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const size = Buffer.alloc(4), sum = Buffer.alloc(4);
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 0, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.alloc((width + 1) * height, 128))), chunk('IEND', Buffer.alloc(0))]).toString('base64');
}
function settle() {
  busy = false;
  say({ type: 'agent_end', messages: [] });
  say({ type: 'agent_settled' });
}
function tool(args, result, details, isError = false) {
  const id = `call-${++calls}`;
  say({ type: 'tool_execution_start', toolCallId: id, toolName: 'bash', args });
  if (result !== undefined) say({ type: 'tool_execution_end', toolCallId: id, toolName: 'bash', result: { content: text(result), details }, isError, durationMs: 1234 });
  return id;
}
function stream(n) {
  let i = 0;
  say({ type: 'message_start', message: { role: 'assistant', content: [] } });
  const timer = setInterval(() => {
    for (const end = Math.min(n, i + 10); i < end; i++) say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: 0, delta: `word${i} ` } });
    if (i < n) return;
    clearInterval(timer);
    say({ type: 'message_end', message: { role: 'assistant', content: text(`${Array.from({ length: n }, (_, k) => `word${k}`).join(' ')} END`), stopReason: 'stop' } });
    settle();
  }, 10);
}
function prompt(words) {
  busy = true;
  prompts.push(words);
  say({ type: 'agent_start' });
  message('user', text(words));
  const ask = /^ASK (.*)$/m.exec(words)?.[1];
  const run = /^RUN ([^]*)$/m.exec(words)?.[1];
  const many = Number(/^MANY (\d+)$/.exec(words)?.[1] ?? 0);
  const show = /^SHOW (.*)$/m.exec(words)?.[1];
  if (show) say({ ...JSON.parse(show), type: 'extension_ui_request', id: `s${prompts.length}` });
  if (ask) {
    const id = `u${calls}`;
    waiting.set(id, tool({ command: 'rm -rf build' }));
    say({ ...JSON.parse(ask), type: 'extension_ui_request', id });
    return;
  }
  for (let i = 0; i < many; i++) message('assistant', text(`answer ${i}`), { usage: undefined });
  const tall = Number(/^TALL (\d+)$/.exec(words)?.[1] ?? 0);
  for (let i = 0; i < tall; i++) message('assistant', text(`tall ${i}.\n\n${'More of it.\n\n'.repeat((i * 7) % 23)}`), { usage: undefined });
  const lines = Number(/^LINES (\d+)$/.exec(words)?.[1] ?? 0);
  if (lines) {
    const id = tool({ command: 'seq' });
    let n = 0;
    const timer = setInterval(() => {
      n++;
      say({ type: 'tool_execution_update', toolCallId: id, toolName: 'bash', args: { command: 'seq' }, partialResult: { content: text(Array.from({ length: n }, (_, k) => `line ${k + 1}`).join('\n')) } });
      if (n === lines) clearInterval(timer);
    }, 20);
    return; // until it is stopped
  }
  if (words === 'RETRY') {
    message('assistant', [], { stopReason: 'error', errorMessage: '503 overloaded' });
    say({ type: 'agent_end', messages: [], willRetry: true });
    say({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 1, errorMessage: '503 overloaded' });
    say({ type: 'agent_start' });
  }
  if (words === 'PICTURE') message('user', [...text('this one'), { type: 'image', mimeType: 'image/png', data: picture(300, 400) }]);
  const pieces = Number(/^STREAM (\d+)$/.exec(words)?.[1] ?? 0);
  if (pieces) return stream(pieces);
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
  } else if (c.type === 'get_state') ok({ sessionId: `pi-${process.pid}${'f'.repeat(forks)}`, sessionFile: `${taken ?? `/tmp/none-${process.pid}.jsonl`}${'f'.repeat(forks)}`, thinkingLevel: level, model: now(), messageCount: prompts.length });
  else if (c.type === 'get_messages') ok({ messages: prompts.map((p) => ({ role: 'user', content: text(p) })) });
  else if (c.type === 'get_available_models') ok({ models: [...all, { provider: 'stub', id: 'gone' }] });
  else if (c.type === 'get_available_thinking_levels') ok({ levels: model === 'stub-1' ? ['off', 'low', 'high'] : ['off', 'max'] });
  else if (c.type === 'set_thinking_level') { level = c.level; ok(); } else if (c.type === 'set_model') {
    if (!all.some((m) => m.id === c.modelId)) return say({ id: c.id, type: 'response', command: c.type, success: false, error: `Model not found: ${c.provider}/${c.modelId}` });
    model = c.modelId;
    ok(now());
  } else if (c.type === 'get_fork_messages') ok({ messages: prompts.map((p, i) => ({ entryId: `e${i}`, text: p })) });
  else if (c.type === 'fork') {
    const at = Number(c.entryId.slice(1));
    const said = prompts[at];
    prompts = prompts.slice(0, at);
    forks++;
    ok({ text: said, cancelled: false });
  } else if (c.type === 'prompt' && c.message.trim() === '/ponder') { // it ends when its question is answered
    waiting.set('ponder', 'none');
    say({ type: 'extension_ui_request', id: 'ponder', method: 'confirm', title: 'Ponder it?', message: '' });
  } else if (c.type === 'clear_queue') { queue = []; say({ type: 'queue_update', steering: [], followUp: [] }); ok({ steering: [], followUp: [] }); }
  else if (c.type === 'get_commands') ok({ commands: [{ name: 'ponder', description: 'Asks', source: 'extension' }, { name: 'fix-tests', description: 'Mend them', source: 'extension' }] });
  else if (c.type === 'get_session_stats') ok({ tokens: { input: 100, output: 20, total: 120 }, cost: 0.0123, contextUsage: { tokens: 120, contextWindow: 1000, percent: 12 } });
  else if (c.type === 'abort') { settle(); ok(); } else if (c.type === 'prompt') {
    ok();
    if (busy) { queue.push(c.message); say({ type: 'queue_update', steering: [], followUp: queue }); } else prompt(c.images ? `${c.message} [${c.images.map((i) => `${i.mimeType} ${i.data.length}`)}]` : c.message);
  } else ok({});
}).on('close', () => process.exit(0));
