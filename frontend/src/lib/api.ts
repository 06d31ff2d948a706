// The one file that knows whether this page is in the desktop window or in a browser.
// Both fetch the same paths; live events and opening a link differ.
import { readJSON, writeJSON } from './exact';
import type { Chain, DryRun, GuardAlert, GuardedView, RuleBody, RuleView, StepView } from './guardtypes';
import type { PiAnswer, PiAsk, PiFile, PiFork, PiInfo, PiModel, PiRow, PiRowQuery, PiSession, PiStart, PiTold } from './pitypes';
import type { Conversation, Grant, Network } from './talktypes';
import type {
  AgentCredentials, AgentRates, AgentView, ApiError, Box, CrewView, Detail, DeskState, Directive, FleetAgent, Pairing, Presence, Priority, Row, Session,
} from './types';

export interface Changed { rev: number; items?: string[]; topics?: string[] }
export interface ResolveBody {
  resolution: 'answered' | 'declined' | 'completed' | 'dismissed';
  value?: unknown; comment?: string; checklist?: { text: string; done: boolean }[];
  edited?: { arguments: Record<string, unknown> }; rule?: RuleBody;
}
export interface GuardianPage { sessions: GuardedView[]; next_cursor?: string; alerts: GuardAlert[] }
export interface SessionPage { session: GuardedView; chain?: Chain; steps: StepView[]; next_cursor?: string }
export interface Marks { read?: boolean; starred?: boolean; archived?: boolean; snoozed_until?: number | null }
/** `kept`: only those of which a decision is kept back. */
export interface ItemQuery { box?: Box; kept?: true; agent?: string; q?: string; limit?: number; cursor?: string }
export interface ItemPage { rows: Row[]; next_cursor?: string; total: number }
export interface DirectiveBody { to: string; title: string; body?: string; priority?: Priority; tags?: string[]; expires_at?: string }
export type Settings = Record<string, unknown>;
export type Policy = AgentView['policy'];

interface WailsDesktop {
  OpenExternal(url: string): Promise<void>;
  OpenItemOnStart?(): Promise<string>;
  SetBadge?(n: number): Promise<void>;
}
interface WailsRuntime {
  EventsOn(name: string, cb: (data: unknown) => void): (() => void) | void;
  ClipboardSetText?(text: string): Promise<boolean>;
  EventsEmit?(name: string, ...data: unknown[]): void;
}
declare global {
  interface Window { go?: { app?: { Desktop?: WailsDesktop } }; runtime?: WailsRuntime }
}

/** Gets an item whole. */
export type Look = (id: string) => Promise<Detail>;

/** The hub answered, and the answer was no. */
export class Refused extends Error {
  constructor(
    readonly status: number, readonly code: string, message: string,
    readonly details: { pointer: string; message: string }[] = [], readonly item?: Detail,
  ) { super(message); }
}
const silent = 'The hub does not answer.';
/** The hub did not answer. */
export class Unreachable extends Error {
  constructor() { super(silent); }
}

/** Of what is on screen while the hub is silent. */
export const stale = 'What is shown may be old.';
/** Of an act: the hub may have done it all the same, and only its answer been lost. */
export const unsure = 'Whether this was done shows when it is back.';
/** Why something failed, for a person: what the hub said against it, or that it is silent and what that means. */
export function failWords(e: unknown, meaning = ''): string {
  if (e instanceof Refused) return e.message;
  return meaning === '' ? silent : `${silent} ${meaning}`;
}

export const inWindow = (): boolean => window.go?.app?.Desktop !== undefined;

// Browsers send a host's cookies to all its ports, so the cookie alone proves nothing: the key that came with it is kept
// where only this very page can read it, and shown with every call.
const keyName = 'deskbell.page';
const pageKey = (): string => localStorage.getItem(keyName) ?? '';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

async function call<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, cache: 'no-store', credentials: 'same-origin' };
  if (signal) init.signal = signal;
  const headers: Record<string, string> = inWindow() ? {} : { 'X-Deskbell-Page': pageKey() };
  init.headers = headers;
  if (method !== 'GET' && method !== 'DELETE') {
    headers['Content-Type'] = 'application/json';
    init.body = writeJSON(body ?? {});
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, init);
    text = await response.text();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Unreachable();
  }
  const json = parse(text);
  if (response.ok) return json as T;
  const refusal = json as (Partial<ApiError> & { item?: Detail }) | undefined;
  if (refusal?.error) {
    const { code, message, details } = refusal.error;
    throw new Refused(response.status, code, inWords(message, details), details, refusal.item);
  }
  if (response.status >= 502 && response.status <= 504) throw new Unreachable();
  throw new Refused(response.status, 'unknown', `The hub answered ${response.status} without a reason.`);
}

/** Fetches a file, with the page's key like every call, and hands it to the browser to keep. */
async function download(path: string, name: string): Promise<void> {
  let blob: Blob;
  try {
    const response = await fetch(path, { cache: 'no-store', credentials: 'same-origin', headers: inWindow() ? {} : { 'X-Deskbell-Page': pageKey() } });
    if (!response.ok) throw new Refused(response.status, 'unknown', `The hub answered ${response.status}; nothing was saved.`);
    blob = await response.blob();
  } catch (e) {
    throw e instanceof Refused ? e : new Unreachable();
  }
  const link = document.createElement('a'); // never in the document: no link there leads away from the page
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A refusal as a sentence for a person: programs need the pointer in front of it, people read on. */
export function inWords(message: string, details: readonly { pointer: string }[] = []): string {
  const pointer = details[0]?.pointer ?? '';
  const said = pointer !== '' && message.startsWith(`${pointer}: `) ? message.slice(pointer.length + 2) : message;
  return said.charAt(0).toUpperCase() + said.slice(1) + (/[.!?…]$/.test(said) ? '' : '.');
}

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return readJSON(text);
  } catch {
    return undefined;
  }
}

function query(params: object): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (value !== undefined && value !== '') search.set(key, String(value));
  const s = search.toString();
  return s ? `?${s}` : '';
}

const item = (id: string): string => `/api/items/${encodeURIComponent(id)}`;
const agent = (id: string): string => encodeURIComponent(id);
const rule = (id: string): string => `/api/rules/${encodeURIComponent(id)}`;
const pi = (id: string): string => `/api/pi/${encodeURIComponent(id)}`;
/** What the person says: to all or to few, in answer to a turn, in a thread or in a new one below that turn. */
export interface Saying { text: string; only?: string[]; in_reply_to?: string; thread?: string; new_thread?: boolean }

const talk = (id: string): string => `/api/conversations/${encodeURIComponent(id)}`;
/** A guarded session's path, from its key: protocol/id. */
const guarded = (key: string): string => {
  const slash = key.indexOf('/');
  return `/api/guardian/${encodeURIComponent(key.slice(0, slash))}/${encodeURIComponent(key.slice(slash + 1))}`;
};

export const api = {
  session: async (with_: { ticket: string } | { token: string }) => {
    const { page_key } = await call<{ page_key: string }>('POST', '/api/session', with_);
    localStorage.setItem(keyName, page_key);
  },
  state: () => call<DeskState>('GET', '/api/state'),
  items: (q: ItemQuery, signal?: AbortSignal) => call<ItemPage>('GET', `/api/items${query(q)}`, undefined, signal),
  item: (id: string, signal?: AbortSignal) => call<Detail>('GET', item(id), undefined, signal),
  resolve: (id: string, body: ResolveBody) => call<Detail>('POST', `${item(id)}/resolve`, body),
  undo: (id: string) => call<Detail>('POST', `${item(id)}/undo`),
  mark: (id: string, marks: Marks) => call<Row>('POST', `${item(id)}/marks`, marks),
  redeliver: (id: string) => call<Detail>('POST', `${item(id)}/redeliver`),
  allowOperator: (id: string) => call<Detail>('POST', `${item(id)}/allow-operator`),
  markAllRead: (box: Box) => call<{ count: number }>('POST', '/api/marks/read', { box }),
  practice: () => call<{ id: string }>('POST', '/api/practice'),
  addAgent: (id: string) => call<AgentCredentials>('POST', '/v1/agents', { agent_id: id }),
  rotateAgent: (id: string) => call<AgentCredentials>('POST', `/api/agents/${agent(id)}/rotate`),
  revokeAgent: (id: string) => call<void>('DELETE', `/v1/agents/${agent(id)}`),
  setPolicy: (id: string, policy: Partial<Policy>) => call<{ agent_id: string; policy: Policy }>('PUT', `/v1/agents/${agent(id)}/policy`, policy),
  approveHost: (id: string, host: string, approve: boolean) => call<AgentView>('POST', `/api/agents/${agent(id)}/hosts`, { host, approve }),
  pairing: (id: string, approve: boolean) => call<Pairing>('POST', `/api/pairings/${encodeURIComponent(id)}`, { approve }),
  /** When it was last active, by what it collected itself: what its owner may ask of it (MA2H §15.3). */
  presence: async (id: string): Promise<Presence> => {
    const { state, last_seen } = await call<{ state: Presence['state']; last_seen?: string }>('GET', `/v1/agents/${agent(id)}/presence`);
    return { state, last_seen: last_seen === undefined ? undefined : Date.parse(last_seen) };
  },
  rates: (agent: string) => call<AgentRates>('GET', `/api/agents/${encodeURIComponent(agent)}/rates`),
  fleet: () => call<{ agents: FleetAgent[]; pairings: Pairing[] }>('GET', '/api/fleet'),
  crew: (id: string) => call<CrewView>('GET', `/api/crew/${agent(id)}`),
  directives: (q: { agent?: string; limit?: number }) => call<{ directives: Directive[] }>('GET', `/api/directives${query(q)}`),
  direct: (body: DirectiveBody) => call<{ id: string }>('POST', '/v1/directives', body),
  closeSession: (id: string) => call<{ session: Pick<Session, 'state' | 'closed_by_operator'> }>('DELETE', `/v1/sessions/${encodeURIComponent(id)}`),
  stopAgent: (id: string) => call<{ sessions_closed: number }>('POST', `/v1/agents/${agent(id)}/stop`),
  resumeAgent: (id: string) => call<void>('POST', `/v1/agents/${agent(id)}/resume`),
  rules: () => call<{ rules: RuleView[]; revoked: RuleView[] }>('GET', '/api/rules'),
  addRule: (body: RuleBody) => call<RuleView>('POST', '/api/rules', body),
  changeRule: (id: string, body: RuleBody) => call<RuleView>('PUT', rule(id), body),
  revokeRule: (id: string) => call<void>('DELETE', rule(id)),
  tryRule: (body: RuleBody & { id?: string }, signal?: AbortSignal) => call<DryRun>('POST', '/api/rules/try', body, signal),
  guardian: (cursor?: string) => call<GuardianPage>('GET', `/api/guardian${query({ cursor })}`),
  guardedSession: (key: string, q: { after?: number; limit?: number }, signal?: AbortSignal) => call<SessionPage>('GET', `${guarded(key)}${query(q)}`, undefined, signal),
  exportSession: (key: string, name: string) => download(`${guarded(key)}/export`, name),
  piSessions: (before?: number) => call<{ sessions: PiSession[]; next_before?: number }>('GET', `/api/pi${query({ before })}`),
  piSession: (id: string) => call<{ session: PiSession; info: PiInfo; asks: PiAsk[]; quiet_ms: number }>('GET', pi(id)),
  readPiFile: (folder: string, file: string) => call<{ id: string }>('POST', '/api/pi-files', { folder, file }),
  piRows: (id: string, q: PiRowQuery) => call<{ rows: PiRow[]; rev: number; more: boolean }>('GET', `${pi(id)}/rows${query(q)}`),
  piFiles: (folder: string, signal?: AbortSignal) => call<{ files: PiFile[] }>('GET', `/api/pi-files${query({ folder })}`, undefined, signal),
  piModels: () => call<{ models: PiModel[] }>('GET', '/api/pi-models'),
  piForks: (id: string) => call<{ forks: PiFork[] }>('GET', `${pi(id)}/forks`),
  startPi: (body: PiStart) => call<{ id: string }>('POST', '/api/pi', body),
  tellPi: (id: string, body: PiTold) => call<PiAnswer>('POST', `${pi(id)}/commands`, body),
  stopPi: (id: string) => call<void>('POST', `${pi(id)}/stop`),
  endPi: (id: string) => call<void>('POST', `${pi(id)}/end`),
  conversations: () => call<{ conversations: Conversation[] }>('GET', '/api/conversations'),
  /** Of a conversation its last turns. */
  conversation: (id: string, turns: number) => call<Conversation>('GET', `${talk(id)}?turns=${turns}`),
  beginTalk: (body: { subject: string; with: string[]; text?: string }) => call<Conversation>('POST', '/api/conversations', body),
  say: (id: string, body: Saying, turns: number) => call<Conversation>('POST', `${talk(id)}/turns?turns=${turns}`, body),
  readTalk: (id: string, turn: string) => call<undefined>('POST', `${talk(id)}/read`, { turn }),
  actOn: (id: string, act: string, turns: number) => call<Conversation>('POST', `${talk(id)}/act?turns=${turns}`, { act }),
  grants: () => call<{ grants: Grant[] }>('GET', '/api/grants'),
  revokeGrant: (id: string) => call<undefined>('DELETE', `/api/grants/${encodeURIComponent(id)}`),
  network: () => call<Network>('GET', '/api/network'),
  /** The names of the secrets that are kept; what they hold is told to nobody. */
  secrets: () => call<{ names: string[] }>('GET', '/api/secrets'),
  settings: () => call<Settings>('GET', '/v1/settings'),
  setSettings: (patch: Settings) => call<Settings>('PATCH', '/v1/settings', patch),
};

/** Listens for changes until the returned function is called. `onDown` tells that the stream broke; it is not reopened here. */
export function listen(onChanged: (c: Changed) => void, onOpen: () => void, onDown: () => void): () => void {
  if (inWindow() && window.runtime) {
    const off = window.runtime.EventsOn('changed', (data) => onChanged(data as Changed));
    onOpen();
    return () => off?.();
  }
  const source = new EventSource(`/api/events?page=${encodeURIComponent(pageKey())}`);
  source.onopen = onOpen;
  source.onmessage = (e) => {
    const data = parse(String(e.data));
    if (data && typeof data === 'object') onChanged(data as Changed);
  };
  source.onerror = () => {
    source.close();
    onDown();
  };
  return () => source.close();
}

/** In the window, a notification or a link of the system may ask for an item, now or before the page was there. */
export function listenOpen(onOpen: (id: string) => void): void {
  if (!inWindow()) return;
  const open = (id: unknown) => { if (typeof id === 'string' && id !== '') onOpen(id); };
  window.runtime?.EventsOn('open-item', open);
  void window.go?.app?.Desktop?.OpenItemOnStart?.().then(open, () => undefined);
}

/** Tells the window what it cannot see by itself: that the page was painted, and whether it has the focus. */
export function tellWindow(): void {
  if (!inWindow()) return;
  const emit = (name: string, ...data: unknown[]) => window.runtime?.EventsEmit?.(name, ...data);
  for (const name of ['focus', 'blur']) window.addEventListener(name, () => emit('focus', document.hasFocus()));
  requestAnimationFrame(() => requestAnimationFrame(() => emit('painted')));
}

/** Ends the program, where the page is in its window. */
export function quit(): void {
  if (inWindow()) window.runtime?.EventsEmit?.('quit');
}

/** Puts a text on the clipboard; rejects where there is none. */
export async function copyText(text: string): Promise<void> {
  if (inWindow() && window.runtime?.ClipboardSetText) {
    if (await window.runtime.ClipboardSetText(text)) return;
    throw new Error('The window gave no clipboard.');
  }
  await navigator.clipboard.writeText(text);
}

export function openExternal(url: string): void {
  const desktop = window.go?.app?.Desktop;
  if (desktop) void desktop.OpenExternal(url);
  else window.open(url, '_blank', 'noopener,noreferrer');
}

/** Says how many items need the person, where it can be seen from outside. */
export function setBadge(needs: number, title: string): void {
  document.title = title;
  void window.go?.app?.Desktop?.SetBadge?.(needs);
}
