// A ready-made first ask for a new agent, which waits for its answer and prints it.
import { humanActor } from './format';

export interface CurlFor { url: string; agent: string; token: string; operator: string; key: string; at: string }

/** A command line for a POSIX shell: words that need no quotes have none. */
export const commandLine = (words: readonly string[]): string => words.map((w) => (/^[\w./:@%+,=-]+$/.test(w) ? w : quoted(w))).join(' ');

/** A command of this program as it can be pasted into a terminal, whether it is installed or not. */
export const deskCommand = (program: readonly string[] | undefined, rest: string): string => `${commandLine(program ?? ['deskbell'])} ${rest}`;

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
  const messages = `${url.replace(/\/$/, '')}/v1/messages`;
  const who = `-H ${quoted(`Authorization: Bearer ${token}`)}`;
  return [
    `curl -sS ${quoted(messages)} \\`,
    `  ${who} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(JSON.stringify(message))} \\`,
    `  | tee /dev/stderr | sed -n 's/.*"id" *: *"\\(msg_[^"]*\\)".*/\\1/p' \\`, // what a refusal says must be seen
    `  | xargs -I ID curl -sS ${quoted(`${messages}/ID?wait=60`)} ${who}`,
  ].join('\n');
}

/** A key that no earlier ask has used. crypto.randomUUID exists on loopback and in the window. */
export const freshKey = (): string => `first-ask-${crypto.randomUUID?.() ?? Date.now().toString(36)}`;
