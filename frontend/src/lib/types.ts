// The shapes that the hub's private surface (/api, and the operator's part of /v1) answers with. backend/desk writes them.
// Times are integer milliseconds since the epoch, 0 or absent when there is none.

import type { Exact } from './exact';
import type { ArgumentChange, CallPart, CallView, RuleOffer } from './guardtypes';

/** One stretch of untrusted text. `m` is set when the stretch must not be shown as it is (a control, bidirectional,
 *  zero-width or look-alike character): `t` is then the label to show in a chip and `m` its explanation. `r` says what is risky about a stretch of a command. */
export interface Span { t: string; m?: string; r?: string }
export type Text = Span[];

export type Kind = 'question' | 'task' | 'notice';
/** The last three are a notice between agents, which follows its mailbox track. */
export type State = 'open' | 'answered' | 'declined' | 'cancelled' | 'expired' | 'completed' | 'dismissed' | 'delivered' | 'queued' | 'acknowledged' | 'bounced';
export type Priority = 'low' | 'normal' | 'high' | 'urgent';
export type Box = 'needs' | 'waiting' | 'notices' | 'done' | 'archive' | 'fleet';

export interface Row {
  id: string; rev: number; protocol: string; kind: Kind; state: State; box: Box;
  agent: string; agent_text: Text; project?: Text;
  title: Text; priority: Priority; sensitive: boolean;
  received_at: number; expires_at?: number; resolved_at?: number;
  unread: boolean; starred: boolean; archived: boolean; snoozed_until?: number;
  checklist?: { done: number; total: number };
  /** The agent's request is being held open right now (long-poll or held call). */
  waiting_now: boolean;
  /** What the answer's delivery needs: the person's approval, a look at why it failed, or only time. */
  attention?: 'approval' | 'failed' | 'retrying';
  /** A decision of the operator is kept back and will be committed then, unless it is taken back. */
  undo_until?: number;
  /** The agent's own request is kept open for the answer; at `expires_at` the hub itself says no. */
  held?: boolean;
  /** An agent asks leave: for a call, or to start a process. */
  ask?: 'call' | 'start';
  /** What became of a call that was judged. */
  verdict?: 'allow' | 'deny' | 'modify';
  /** Set on a message between agents: its address, agent:<id> or agent:<id>#<session>. */
  to?: Text;
  /** It ended because it could not reach its addressee: how its track ended. */
  undelivered?: 'bounced' | 'expired';
  /** The agent did not get the answer, or it is not known whether it did. */
  lost?: 'not-delivered' | 'not-known';
  progress?: Progress;
  /** What was chosen or written, where that is one text. */
  answer?: Text;
  /** Why a search found it, where its title does not say so. */
  found?: Found;
}

/** Where the words of a search stand, and the text around the first of them. */
export interface Found { in: 'comment' | 'answer' | 'body' | 'choices' | 'tags'; before: Text; hit: Text; behind: Text }

/** How far work is, as whoever does it last told: 0 to 1, where it was said. */
export interface Progress { part?: number; note?: Text; at: number }

/** An agent that a principal runs over ACP; agents are named as the fleet knows them. */
export interface CrewView {
  id: string; principal: string; role: Text; parent?: string; state: 'running' | 'stopped'; process: boolean; ended_at?: number; reason?: Text;
  queued: number; open_tasks: number;
  children: { agent_id: string; role: Text; state: 'running' | 'stopped' }[];
  shared: { key: Text; value?: unknown; size: number; scope: 'session' | 'persistent'; version: number; at: number }[];
}

export interface Option { value: string; label: Text; description?: Text }

export interface Part {
  kind: 'text' | 'data' | 'file';
  html?: string;            // kind text: sanitised
  data?: unknown;           // kind data: any JSON object
  file?: { uri: Text; host?: string; name?: Text; mime?: string };  // never fetched
}

export interface Request {
  mode: 'select' | 'confirm' | 'input';
  options?: Option[];
  schema?: JSONSchema;      // mode input
  allow_edit: boolean; allow_respond: boolean; allow_ignore: boolean;
  /** A comment reaches nobody: the agent is sent the answer alone. */
  no_comment?: boolean;
}

/** The flat JSON Schema of an input ask: what the form is made from. */
export interface JSONSchema {
  type?: string | string[]; title?: string; description?: string;
  /** A subschema may be `true`, which takes anything, or `false`, which takes nothing. */
  properties?: Record<string, JSONSchema | boolean>; required?: string[]; additionalProperties?: JSONSchema | boolean;
  enum?: unknown[]; default?: unknown; format?: string; pattern?: string;
  minLength?: Exact; maxLength?: Exact; minItems?: Exact; maxItems?: Exact; minimum?: Exact; maximum?: Exact;
  exclusiveMinimum?: Exact; exclusiveMaximum?: Exact; multipleOf?: Exact;
  items?: JSONSchema | boolean; 'x-ma2h-sensitive'?: boolean; [k: string]: unknown;
}

export interface Check { text: Text; done: boolean }

export interface Outcome {
  resolution: string; value?: string | Record<string, unknown>; edited: boolean; comment?: Text; actor: string;
  resolved_at: number; defaulted: boolean; checklist?: Check[];
  /** For a select or confirm: the label of the chosen option. */
  label?: Text;
  /** For a call that was allowed otherwise than asked: what changed. */
  arguments_changed?: ArgumentChange[];
  /** Set when a rule judged it. */
  rule?: { id: string; text: Text };
}

export interface HistoryEntry { at: number; actor: string; action: string; note?: Text }

export interface Attempt { n: number; at: number; status?: number; error?: string; snippet?: string; ms: number }
export interface Push {
  state: 'waiting_approval' | 'pending' | 'delivered' | 'gave_up' | 'refused' | 'collected';
  host: string; url: Text; max_attempts: number; next_at?: number; attempts: Attempt[];
}
export interface Track { state: 'delivered-to-agent' | 'acknowledged' | 'expired'; delivered_at?: number; acknowledged_at?: number; note?: Text }

export interface Detail extends Row {
  run_id?: Text; /** It was asked in a session, whose stream may have shown the answer. */ in_session?: boolean; /** Of agents, that it belongs to. */ conversation?: string; runtime?: string; tags: Text[];
  body_html?: string; context: Part[];
  request?: Request;
  action?: { instructions_html: string; verification_html?: string; checklist: Check[] };
  /** Whether the operator may decide it now; `reason` says why not, in words; `fix` names the deliberate act that would help. */
  answerable: { ok: boolean; reason?: string; fix?: 'allow_operator' };
  allowed_resolvers?: string[] | null;
  /** What happens if nobody decides, to go on after "If nobody answers by …,": "the answer is “Hold for review”", "it expires without an answer". */
  on_expire?: string;
  /** Set where the default answer has a label: what is chosen then. */
  default_label?: Text;
  /** The default answer, where it is no single text. */
  default_value?: Record<string, unknown>;
  outcome?: Outcome;
  push?: Push; track?: Track;
  /** It was answered, and is not known yet to have been handed over. */
  on_way?: boolean;
  history: HistoryEntry[];
  /** Set while `resolve.hold_seconds` keeps a decision back: it is committed at this time unless undone. */
  held_decision?: { commit_at: number; resolution: string };
  call?: CallView;
  /** What runs if the person says so. */
  command?: CallPart;
  /** Only while it is open. */
  rule_offers?: RuleOffer[];
  /** Set on a message between agents. */
  mailbox?: MailboxTrack;
}

export type MailboxState = 'queued' | 'delivered' | 'acknowledged' | 'bounced' | 'expired';
/** How far a message between agents, or a directive, got. `prior` says what a bounced one was before. */
export interface MailboxTrack { state: MailboxState; delivered_at?: number; acknowledged_at?: number; prior?: 'queued' | 'delivered' | 'acknowledged'; /** It was sent to the agent, whether or not that proved that it arrived. */ shown?: boolean; note?: Text }

/** online: showed itself within the window; offline: longer ago; unknown: never. */
export interface Presence { state: 'online' | 'offline' | 'unknown'; last_seen?: number }

export interface Session {
  id: string; state: 'active' | 'closed' | 'expired'; presence: Presence;
  label?: Text; kind?: Text; project?: Text; run_id?: Text;
  created_at: number; lease_end: number; ttl_seconds: number; closed_at?: number; closed_by_operator?: boolean;
  /** Entries that wait for this session alone. */
  entries_waiting: number;
  /** Open items that it submitted, and waits for. */
  open_items: number;
}

export interface FleetAgent extends AgentView {
  presence: Presence;
  /** The operator's durable stop: no new session until it is lifted. */
  stopped?: { at: number; by: string };
  /** It has ended for good: nothing reaches it any more, and nothing resumes it. */
  ended_at?: number;
  /** Entries that wait for the agent itself, to be read in whatever session; what waits for one session alone is counted there. */
  entries_waiting: number;
  sessions: Session[];
}

export interface Directive {
  id: string; to: string; title: Text; body_html?: string;
  /** As the person wrote it. */
  written: { title: string; body?: string; priority?: Priority; tags?: string[] };
  created_at: number; expires_at?: number;
  /** When the hub gives it up: its own deadline, or the end of what it keeps messages for. */
  due_at: number;
  state: MailboxState; prior?: 'queued' | 'delivered' | 'acknowledged'; /** It was sent to the agent, whether or not that proved that it arrived. */ shown?: boolean; delivered_at?: number; ended_at?: number; note?: Text; push?: Push;
}

export interface Counts { needs: number; waiting: number; notices: number; done: number; /** Items in Done whose answer could not be delivered. */ failed: number; unread_notices: number; agents_attention: number; /** Open calls that wait for the person. */ guardian?: number; /** Guarded sessions whose record was found changed. */ broken?: number; /** Conversations with something new. */ conversations?: number }

export interface DeskState {
  rev: number; counts: Counts; operator: string;
  hub: { url: string; version: string; dev: boolean; data: string; command: string[]; relaxations: string[] };
  notifications: { available: boolean; reason?: string };
  agents: number; answered_ever: boolean;
}

export interface AgentView {
  agent_id: string; protocol: string; created_at: number; revoked_at?: number; last_seen?: number;
  open_items: number;
  policy: { operator_resolves_unlisted: boolean; callback_hosts: string[]; allowed_senders: string[] | null; inbound_webhook: string | null };
  /** Hosts (host or host:port) that deliveries wait for the operator to approve. */
  hosts_awaiting_approval: string[];
}
/** What an agent sent the person within the last `ms`, and what became of the asks and tasks. */
export interface Rate { ms: number; asks: number; tasks: number; notices: number; answered: number; expired: number; withdrawn: number; open: number; median_ms?: number }
/** What is left of what it may do in a minute: messages to the person, to agents, registrations of sessions. `refused`: since the hub began. */
export interface Budget { kind: 'person' | 'agents' | 'sessions'; per_minute: number; left: number; refused: number }
export interface AgentRates { rates: Rate[]; max_open: number; budgets?: Budget[] }
export interface AgentCredentials { agent_id: string; token: string; signing_secret: string; ed25519_public_key: string }
export interface Pairing { id: string; agent_id: string; code: string; note?: Text; created_at: number; expires_at: number; state: 'pending' | 'approved' | 'refused' | 'expired'; enrolled?: boolean }

export interface ApiError { error: { code: string; message: string; details?: { pointer: string; message: string }[] } }
