import { describe, expect, it } from 'vitest';
import { askCurl } from '../src/lib/curl';

describe('the first ask', () => {
  const curl = askCurl({ url: 'http://127.0.0.1:6224/', agent: "o'brien/bot", token: 'tok', operator: 'maria', key: 'k1', at: '2026-01-01T00:00:00Z' });
  it('is a whole message to the operator', () => {
    const body = /-d '(.+?)' \\\n/s.exec(curl)?.[1]?.replaceAll(`'\\''`, "'") ?? '';
    expect(JSON.parse(body)).toMatchObject({
      type: 'ask', idempotency_key: 'k1', created_at: '2026-01-01T00:00:00Z', agent: { id: "o'brien/bot", runtime: 'cli' }, request: { mode: 'select', allowed_resolvers: ['human:maria'] },
    });
  });
  it('goes to the hub with the token', () => {
    expect(curl).toContain("'http://127.0.0.1:6224/v1/messages'");
    expect(curl).toContain("'Authorization: Bearer tok'");
  });
});
