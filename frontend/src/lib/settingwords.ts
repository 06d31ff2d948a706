// What each setting of the hub is called and does. A key that is not here is shown plainly.

export interface SettingWords { key: string; label: string; about: string; unit?: string }
export interface SettingGroup { title: string; about?: string; settings: SettingWords[] }

export const settingGroups: readonly SettingGroup[] = [
  { title: 'You and your answers', settings: [
    { key: 'operator.id', label: 'Your name', about: 'Answers are signed with it as human:NAME, and agents name it to let you answer.' },
    { key: 'resolve.hold_seconds', label: 'Hold a decision back', about: 'A decision goes out after this time; until then you can take it back. 0 sends it at once.', unit: 'seconds' },
    { key: 'retention_days', label: 'Keep items', about: 'What is decided and older than this is deleted.', unit: 'days' },
  ] },
  { title: 'Limits for each agent', settings: [
    { key: 'rate_limit.requests_per_minute', label: 'Requests', about: 'An agent that calls more often is told to slow down.', unit: 'a minute' },
    { key: 'rate_limit.inbox_depth', label: 'Open items', about: 'An agent with so many items open can post no more until some are decided.', unit: 'items' },
  ] },
  { title: 'Sending answers', settings: [
    { key: 'callbacks.allow_loopback', label: 'Callbacks to this machine', about: 'Answers may be sent to agents that listen on this computer, once their address is approved.' },
  ] },
  { title: 'Between agents', about: 'Whether agents that speak MA2H may write to each other through this hub. In either case they reach you, and you them. Agents of ACP and MAP reach each other by their own protocols.', settings: [
    { key: 'inter_agent.enabled', label: 'Messages between agents', about: 'Agents may address each other, where the receiver allows the sender. You can read all of it under Between agents.' },
  ] },
  { title: 'Agents of ACP', settings: [
    { key: 'acp.roles', label: 'Commands by role', about: 'An agent may ask to have another one started, by its role. What stands here is then run as a process; each start is asked of you.' },
    { key: 'acp.gate', label: 'Ask about tools', about: 'What happens when an agent asks another one to use a tool, and no rule decides. In the name of a tool * stands for anything.' },
  ] },
  { title: 'Network of agents', about: 'Agents that speak MAP connect to this hub and find each other, and you, there.', settings: [
    { key: 'map.require_credential', label: 'Only with a credential', about: 'On: agents of the network must show a token of this hub. Off: programs on this computer may connect without one.' },
    { key: 'map.credentials', label: 'Secrets that agents may ask for', about: 'An agent that asks for the scope may be handed the secret. You are asked each time, and say for how long. A secret is kept with “deskbell secret set NAME”.' },
    { key: 'map.workspaces', label: 'Folders that agents may read', about: 'What is in the folder may be searched and read by that agent, and by whoever proves to be its principal (agent:NAME).' },
    { key: 'map.peers', label: 'Other hubs', about: 'Messages for agents there are routed to them, with this hub’s token there, which the secret holds. Those hubs may bring theirs with the credential of that name here.' },
    { key: 'map.system_id', label: 'This hub’s name among hubs', about: 'Other hubs list it as this. Empty: one made of its signing key.' },
  ] },
  { title: 'Presence', about: 'An agent is active when it collects its messages, and in all it does in a session. One that only asks and never collects has never listened.', settings: [
    { key: 'presence.freshness_seconds', label: 'Counts as listening', about: 'Time after it last collected its messages.', unit: 'seconds' },
  ] },
  { title: 'Sessions', about: 'A session is one run of an agent with an address of its own. It lives on a lease that the agent renews by showing itself; when the lease runs out, what was still on its way to the session bounces.', settings: [
    { key: 'sessions.min_ttl_seconds', label: 'Shortest lease', about: 'A session that asks for less gets this.', unit: 'seconds' },
    { key: 'sessions.max_ttl_seconds', label: 'Longest lease', about: 'A session that asks for more gets this.', unit: 'seconds' },
    { key: 'sessions.max_live_per_agent', label: 'Live sessions', about: 'The most that one agent may have at the same time.', unit: 'sessions' },
    { key: 'sessions.terminal_retention_seconds', label: 'Remember ended sessions', about: 'Time for which it is shown how a session ended.', unit: 'seconds' },
    { key: 'sessions.agent_list_visibility', label: 'Agents see each other', about: 'On: every agent may list the sessions of all others. Off: each sees only its own.' },
  ] },
  { title: 'Mailboxes', about: 'What you and other agents write to an agent waits in its mailbox until the agent collects and acknowledges it.', settings: [
    { key: 'inbound.visibility_timeout_seconds', label: 'Offer again', about: 'What was collected and not acknowledged within this time is offered once more.', unit: 'seconds' },
    { key: 'inbound.max_batch', label: 'At once', about: 'The most that is handed out in one go.', unit: 'messages' },
    { key: 'inbound.stream_max_hold_seconds', label: 'Longest stream', about: 'After this an agent that follows its mailbox must connect again.', unit: 'seconds' },
  ] },
];

const number = new Intl.NumberFormat('en-US');
const PARTS: readonly [number, string][] = [[86_400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']];

/** Seconds as a person says them: 86400 → "1 day", 90 → "1 minute 30 seconds"; '' where seconds say it already. */
export function inWords(seconds: number): string {
  if (!Number.isInteger(seconds) || seconds < 60) return '';
  const said: string[] = [];
  let rest = seconds;
  for (const [size, name] of PARTS) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) said.push(`${n} ${name}${n === 1 ? '' : 's'}`);
  }
  return said.join(' ');
}

const labels = new Map(settingGroups.flatMap((g) => g.settings.map((s) => [s.key, s.label])));

/** What the hub has against a value, as a sentence: settings by their names, thousands with separators. */
export function objection(message: string): string {
  const said = message.replaceAll(/\b[a-z_]+(?:\.[a-z_]+)+\b/g, (key) => (labels.has(key) ? `“${labels.get(key)}”` : key))
    .replaceAll(/\b\d{4,}\b/g, (n) => number.format(Number(n)));
  const first = said.charAt(0).toUpperCase() + said.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

const known = new Set(settingGroups.flatMap((g) => g.settings.map((s) => s.key)));

/** The groups with only what the hub has, and the rest under its own keys. */
export function grouped(settings: Record<string, unknown>): SettingGroup[] {
  const groups = settingGroups.map((g) => ({ ...g, settings: g.settings.filter((s) => s.key in settings) })).filter((g) => g.settings.length > 0);
  const rest = Object.keys(settings).filter((k) => !known.has(k)).sort();
  if (rest.length) groups.push({ title: 'Other', settings: rest.map((key) => ({ key, label: key, about: '' })) });
  return groups;
}
