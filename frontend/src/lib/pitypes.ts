// What the hub says of sessions of pi. backend/desk/pi.go writes it.
import type { Text } from './types';

export type PiState = 'starting' | 'idle' | 'running' | 'retrying' | 'compacting' | 'waiting' | 'stopping' | 'exited';

export interface PiSession {
  id: string; agent: string; title: Text; folder: Text; state: PiState; waiting: number; model: Text;
  origin: 'hub' | 'relay'; args: string[]; opened_at: number; last_seen: number; ended_at?: number; ended?: Text; rows: number; resumable: boolean;
  /** Whether pi keeps a file of it, by which it can be taken up again once it has ended. */
  kept: boolean;
  /** The session that took its place, while that runs. */
  then?: string;
}

export interface PiUsage { input: number; output: number; cache_read: number; cache_write: number; total: number; cost: number }

export interface PiModel { provider: string; id: string; name: string; images: boolean; reasoning: boolean }
/** A prompt at which a session can be forked. */
export interface PiFork { entry: string; text: Text }

export interface PiInfo {
  thinking: string; steering: Text[]; follow_up: Text[]; statuses: { key: string; text: Text }[]; widgets: { lines: Text[]; below: boolean }[];
  commands: { name: string; description: Text; source: string }[]; models: PiModel[];
  /** The model that is used: empty where pi has none; and the levels of thinking it has, none where pi does not say. */
  provider: string; model: string; reasoning: boolean; levels: string[];
  /** Whether the model that is used sees pictures. */
  images: boolean; prefill: string;
  retry: { attempt: number; most: number; delay_ms: number; error: Text } | null;
  context: { tokens: number; window: number; percent: number } | null; total: PiUsage | null;
}

/** A dialog that waits: the message in the inbox, and the call that asks; '' for none. */
export interface PiAsk { item: string; call: string; title: Text; /** It is leave for the call that is asked. */ leave: boolean }

/** A stretch of text as a terminal would show it: `s` is its style, in words. */
export interface PiSpan { t: string; m?: string; s?: string }
export interface PiBlock {
  kind: 'text' | 'thinking' | 'image' | 'call' | 'other';
  html?: string; text?: PiSpan[]; call?: string; name?: Text; mime?: string; data?: string; cut?: boolean;
}
export interface PiTool {
  call: string; name: Text; arguments: Text; result: PiBlock[]; diff?: Text; is_error: boolean; took_ms?: number; exit?: number; nested?: boolean;
  /** Who did not let it happen, and why; `rule`: which rule it was. */
  refused?: { by: string; rule?: string; reason: Text };
}
export interface PiRow {
  n: number; rev: number; kind: 'user' | 'assistant' | 'tool' | 'bash' | 'notice' | 'compaction' | 'summary' | 'custom' | 'system' | 'raw';
  at: number; open?: boolean; interrupted?: boolean; retried?: boolean; title?: Text; level?: string; stop?: string; error?: Text; model?: string;
  usage?: PiUsage; blocks: PiBlock[]; tool?: PiTool;
}

export interface PiStart { folder: string; model?: string; thinking?: string; args?: string[]; gate?: boolean; resume?: string; file?: string }
/** A session that pi itself keeps. */
export interface PiFile { path: string; id: string; title: Text; changed: number }
export interface PiTold { text?: string; steer?: boolean; images?: { mime: string; data: string }[]; type?: string; provider?: string; model?: string; level?: string; name?: string; entry?: string; row?: number }
/** `session` is the one that took the other's place. */
export interface PiAnswer { type: string; done: boolean; path?: Text; vetoed?: boolean; session?: string }
export interface PiRowQuery { after?: number; before?: number; from?: number; q?: string; limit?: number }
