// An agent that speaks MAP, outside any page. Node 20 has no WebSocket of its own, and this is all of one that it needs.
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';

/** Connects and registers an agent of that name; `more` are members of its registration. */
export async function mapAgent(hub, name, more = {}) {
  const socket = await new Promise((then, fail) => {
    const q = request(`${hub.url}/map`, { headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': randomBytes(16).toString('base64') } });
    q.on('upgrade', (_, s) => then(s)).on('response', (r) => fail(new Error(`/map: ${r.statusCode}`))).on('error', fail).end();
  });
  socket.on('error', () => {}); // the hub may go first
  const send = (opcode, text) => {
    const size = text.length < 126 ? [0x80 | text.length] : [0x80 | 126, text.length >> 8, text.length & 0xff];
    const mask = randomBytes(4);
    socket.write(Buffer.concat([Buffer.from([0x80 | opcode, ...size]), mask, text.map((b, i) => b ^ mask[i % 4])]));
  };
  const waiting = new Map();
  let bytes = Buffer.alloc(0);
  socket.on('data', (more_) => {
    bytes = Buffer.concat([bytes, more_]);
    for (;;) { // frames of a server: not masked, text in one piece
      if (bytes.length < 2) return;
      const short = bytes[1] & 0x7f;
      const head = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (bytes.length < head) return;
      const size = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
      if (bytes.length < head + size) return;
      if ((bytes[0] & 0xf) === 1) {
        const frame = JSON.parse(bytes.subarray(head, head + size).toString());
        waiting.get(frame.id)?.(frame);
      } else if ((bytes[0] & 0xf) === 9) {
        send(0xa, bytes.subarray(head, head + size)); // who does not answer a ping is taken for gone
      }
      bytes = bytes.subarray(head + size);
    }
  });
  let n = 0;
  const ask = (method, params) => new Promise((then) => {
    const id = ++n;
    waiting.set(id, then);
    send(1, Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params })));
  });
  await ask('map/connect', { protocolVersion: 1, participantType: 'agent', name });
  await ask('map/agents/register', { name, ...more });
  return { ask, end: () => socket.destroy() };
}
