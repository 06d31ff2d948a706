// What each setting of the hub is called and does. A key that is not here is shown plainly.

export interface SettingWords { key: string; label: string; about: string; unit?: string }
export interface SettingGroup { title: string; settings: SettingWords[] }

export const settingGroups: readonly SettingGroup[] = [
  { title: 'You and your answers', settings: [
    { key: 'operator.id', label: 'Your name', about: 'Answers are signed with it as human:NAME, and agents name it to let you answer.' },
    { key: 'resolve.hold_seconds', label: 'Hold a decision back', about: 'For so long a decision can be taken back before it goes out. 0 sends at once.', unit: 'seconds' },
    { key: 'retention_days', label: 'Keep items', about: 'What is decided and older than this is deleted.', unit: 'days' },
  ] },
  { title: 'Limits for each agent', settings: [
    { key: 'rate_limit.requests_per_minute', label: 'Requests', about: 'An agent that calls more often is told to slow down.', unit: 'a minute' },
    { key: 'rate_limit.inbox_depth', label: 'Open items', about: 'An agent with so many items open can post no more until some are decided.', unit: 'items' },
  ] },
  { title: 'Sending answers', settings: [
    { key: 'callbacks.allow_loopback', label: 'Callbacks to this machine', about: 'Answers may be sent to agents that listen on this computer, once their address is approved.' },
    { key: 'inbound.visibility_timeout_seconds', label: 'Claim', about: 'A mailbox entry that was handed out and not acknowledged is offered again after this.', unit: 'seconds' },
    { key: 'inbound.max_batch', label: 'Batch', about: 'The most mailbox entries that are handed out at once.', unit: 'entries' },
    { key: 'inbound.stream_max_hold_seconds', label: 'Stream', about: 'The longest that one mailbox stream is held open.', unit: 'seconds' },
  ] },
  { title: 'Presence and sessions', settings: [
    { key: 'presence.freshness_seconds', label: 'Counts as online', about: 'For so long after its last call an agent is shown as online.', unit: 'seconds' },
    { key: 'sessions.min_ttl_seconds', label: 'Shortest session', about: 'The shortest lease that a session may ask for.', unit: 'seconds' },
    { key: 'sessions.max_ttl_seconds', label: 'Longest session', about: 'The longest lease that a session may ask for.', unit: 'seconds' },
    { key: 'sessions.max_live_per_agent', label: 'Live sessions', about: 'The most sessions an agent may have at the same time.', unit: 'sessions' },
    { key: 'sessions.terminal_retention_seconds', label: 'Remember ended sessions', about: 'An ended session can still be asked about for this long.', unit: 'seconds' },
    { key: 'sessions.agent_list_visibility', label: 'Agents see each other', about: 'Agents may list the sessions of other agents.' },
  ] },
  { title: 'Between agents', settings: [
    { key: 'inter_agent.enabled', label: 'Messages between agents', about: 'Agents may address each other through this hub. You see what they send.' },
  ] },
];

const known = new Set(settingGroups.flatMap((g) => g.settings.map((s) => s.key)));

/** The groups with only what the hub has, and the rest under its own keys. */
export function grouped(settings: Record<string, unknown>): SettingGroup[] {
  const groups = settingGroups.map((g) => ({ title: g.title, settings: g.settings.filter((s) => s.key in settings) })).filter((g) => g.settings.length > 0);
  const rest = Object.keys(settings).filter((k) => !known.has(k)).sort();
  if (rest.length) groups.push({ title: 'Other', settings: rest.map((key) => ({ key, label: key, about: '' })) });
  return groups;
}
