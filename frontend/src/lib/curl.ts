// A ready-made first ask for a new agent.
import { humanActor } from './format';

export interface CurlFor { url: string; agent: string; token: string; operator: string; key: string; at: string }

/** Quotes a text for a POSIX shell. */
const quoted = (s: string): string => `'${s.replaceAll("'", `'\\''`)}'`;

export function askCurl({ url, agent, token, operator, key, at }: CurlFor): string {
  const message = {
    ma2h_version: '0.6', type: 'ask', created_at: at, idempotency_key: key,
    agent: { id: agent, run_id: 'first-run', runtime: 'cli' },
    title: 'May I tidy up the build folder?',
    body: 'It holds **412 MB** of old artefacts.',
    request: {
      mode: 'select', allowed_resolvers: [humanActor(operator)],
      options: [{ value: 'tidy', label: 'Tidy it up' }, { value: 'keep', label: 'Leave it alone' }],
    },
  };
  return [
    `curl -sS ${quoted(`${url.replace(/\/$/, '')}/v1/messages`)} \\`,
    `  -H ${quoted(`Authorization: Bearer ${token}`)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(JSON.stringify(message))}`,
  ].join('\n');
}

/** A key that no earlier ask has used. crypto.randomUUID exists on loopback and in the window. */
export const freshKey = (): string => `first-ask-${crypto.randomUUID?.() ?? Date.now().toString(36)}`;
