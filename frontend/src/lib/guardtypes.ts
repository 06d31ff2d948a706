// What the hub answers about calls, rules and guarded sessions (backend/desk writes it). Times are milliseconds since the epoch.
import type { Text } from './types';

/** An argument of a call, as what it is. `left_out`: the lines of a diff, or the bytes of the rest, that are not here;
 *  `added` and `removed` count these too; `does`: what becomes of the file besides;
 *  `outside`: the path leads out of the folder in which the agent works; `beside`: it is no argument, the call says it besides. */
export type CallPart = { beside?: boolean } & (
  | { kind: 'command'; name: string; text: Text; risks: string[]; left_out?: number }
  | { kind: 'diff'; name: string; path: Text; lines: DiffLine[]; added?: number; removed?: number; does?: string; risks?: string[]; left_out?: number; outside?: boolean }
  | { kind: 'file'; name: string; path: Text; text: Text; risks?: string[]; left_out?: number; outside?: boolean }
  | { kind: 'url'; name: string; host: Text; url: Text; risks: string[] }
  | { kind: 'path'; name: string; path: Text; risks?: string[]; outside: boolean }
  | { kind: 'text'; name: string; text: Text; left_out?: number; aside?: boolean }
  | { kind: 'data'; name: string; data: unknown; left_out?: number; aside?: boolean }
);

/** "…" stands for `same` lines. Without `hides` they stay, far from any change: `folded`, where they were sent. With it they are
 *  more lines of that kind, for which there was no room. */
export interface DiffLine { op: ' ' | '+' | '-' | '…'; text: Text; old?: number; new?: number; /** Bytes of it that are not shown. */ left?: number; same?: number; folded?: DiffLine[]; hides?: ' ' | '+' | '-' }

/** An act that an agent asks leave for. All of it is what the agent says of itself. */
export interface CallView {
  platform: Text; tool: Text; folder?: Text; permission?: Text;
  /** What the agent says that the call is for: its operation, capability, intent. */
  about?: { name: string; text: Text }[];
  /** Its session for the Guardian view: protocol/session. */
  session?: string;
  /** The call's own id in it. */
  request?: string;
  subagent: boolean;
  /** No leave is asked for it: a question of another kind is about it. */
  shown?: boolean;
  prompt?: Text;
  steps: { at: number; what: string; text: Text }[];
  parts: CallPart[];
  /** As asked: what the edit form starts from. */
  arguments: Record<string, unknown>;
  /** Names of arguments that may be changed; ["*"]: all; empty: none. */
  editable: string[];
  /** Set where an allow also answers the agent's own question. */
  warning?: string;
  /** The rule that leaves it to the person. `untold`: it cannot be told whether the rule is about the call. */
  asks?: { id: string; text: Text; verdict: Verdict; untold?: boolean };
}

/** `diff`: where `from` and `to` are not all of what they were. */
export interface ArgumentChange { name: Text; from: Text; to: Text; diff?: CallPart & { kind: 'diff' } }

export type Verdict = 'allow' | 'deny' | 'ask';
export type Op = 'is' | 'like' | 'command' | 'within' | 'host';
export interface MatchArgument { name: string; op: Op; value: string }
/** Which calls a rule is about: every member that is there must hold. */
export interface Match {
  protocol?: string; platform?: string; agent?: string; addressee?: string; folder?: string; session?: string; tool?: string; provider?: string; version?: string;
  /** Of the arguments: these and no others. */
  only?: boolean;
  arguments?: MatchArgument[];
  hours?: { from: string; to: string; days?: number[] };
}

/** Texts of a match in which something is not what it looks like, as they are to be shown. */
export type Marked = Record<string, Text>;

/** A rule that the hub suggests on a call's card. `past`: how many past calls it would have matched; `aside`: the arguments that do not count as others. */
export interface RuleOffer { scope: 'session' | 'always'; verdict: 'allow' | 'deny'; match: Match; text: Text; marked?: Marked; aside?: string; warnings: string[]; past: number }

export interface RuleBody { verdict: Verdict; match: Match; reason?: string; before?: string }

export interface RuleView {
  id: string; verdict: Verdict; reason: Text; reason_text: string; match: Match; text: Text; marked?: Marked; warnings: string[];
  created_at: number; created_by: string; item?: string; uses: number; last_used?: number; revoked_at?: number; revoked_by?: string;
}

/** What a rule would have done to the calls that were. `calls` are the newest that it matches, or of which that cannot be told:
 *  these are `untold`. `aside`: the arguments that do not count as others. */
export interface DryRun {
  text: Text; marked?: Marked; aside?: string; warnings: string[]; tried: number; since: number; matched: number; untold: number;
  changes: { was: string; would: string; count: number }[];
  calls: { at: number; agent: Text; tool: Text; summary: Text; was: string; judge: string; would: string; item?: string }[];
}

export interface GuardedView {
  key: string; id: string; protocol: string; agent: string; agent_text: Text; platform: Text; folder: Text;
  opened_at: number; last_seen: number; sealed_at?: number;
  steps: number; waiting: number; allowed: number; denied: number; head: string;
  /** The step at which the chain was last found broken; 0 or absent: nowhere. */
  broken_at?: number;
  terms: { decision_ms: number; on_decision_failure: string; methods: string[]; profiles: string[] };
}

export type AlertKind = 'unsigned' | 'unknown_session' | 'replay' | 'signature' | 'skew' | 'chain' | 'changed';
export interface GuardAlert { at: number; kind: AlertKind; agent: Text; text: string; session?: string }

/** `foreign`: steps that were signed with another secret than the hub has now. */
export interface Chain { ok: boolean; steps: number; foreign?: number; broken_at?: number; why?: string }
export type StepKind = 'session' | 'turn' | 'prompt' | 'call' | 'result' | 'answer' | 'subagent' | 'other';
export interface StepView {
  /** `sent_at` is what the agent says, 0 where it says nothing that is a time. */
  seq: number; at: number; sent_at: number; method: string; what: StepKind; text: Text; tool?: Text; turn?: string;
  verdict: '' | 'allow' | 'deny' | 'modify'; judge?: string; rule?: string; reason?: Text; arguments_changed?: ArgumentChange[]; waited_ms?: number; item?: string;
  codes: string[]; request_hash: string; hash: string;
}
