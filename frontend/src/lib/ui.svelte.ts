// What is on screen besides the data: the view, the pane with the focus, what lies on top.
import type { Box } from './types';

export type View = Box | 'agents' | 'sent' | 'guardian' | 'pi' | 'rules' | 'conversations' | 'settings';
export type Overlay = 'help' | 'palette' | 'snooze' | 'compose' | 'confirm' | 'grant' | 'rule' | 'revoke' | 'pi-new' | 'pi-fork' | 'pi-end' | null;
/** The action of a toast that takes back what it tells of. */
export const UNDO = 'Undo';
export interface Toast { id: number; text: string; tone: 'plain' | 'wait' | 'bad'; action?: { label: string; run: () => void } }

const boxes: readonly string[] = ['needs', 'waiting', 'notices', 'done', 'archive', 'fleet'] satisfies Box[];
export const isBox = (v: string): v is Box => boxes.includes(v);
export const isView = (v: string): v is View => isBox(v) || ['agents', 'sent', 'guardian', 'pi', 'rules', 'conversations', 'settings'].includes(v);

class UI {
  view = $state<View>('needs');
  /** Which pane has the person's attention; in a narrow window it is the only one shown. */
  pane = $state<'list' | 'item'>('list');
  overlay = $state<Overlay>(null);
  /** In the view of agents: the one whose page is open. */
  agent = $state<string | null>(null);
  /** In the Guardian's view: the session (protocol/id) whose steps are open. Among the rules: the one that was asked for. */
  session = $state<string | null>(null);
  rule = $state<string | null>(null);
  /** In an open session: the step whose detail is open. */
  step = $state<number | null>(null);
  /** Among sessions of pi: the one that is open, and the call in it that was asked for. */
  pi = $state<string | null>(null);
  piCall = $state<string | null>(null);
  /** Among the conversations: the one that is open. */
  talk = $state<string | null>(null);
  /** The list that the page of an agent or a session was opened from, to go back to. */
  cameFrom = $state<Box | null>(null);
  firstRun = $state(false);
  toasts = $state<Toast[]>([]);
  /** What a screen reader is told next, politely. */
  said = $state('');
  private seq = 0;
  private hinted = 0;

  say(text: string): void {
    this.said = this.said === text ? `${text}\u00a0` : text;
  }

  /** Shows words for a while, in place of plain ones or of the toast `instead`, and returns their id. */
  toast(text: string, tone: Toast['tone'] = 'plain', action?: Toast['action'], instead?: number): number {
    const id = ++this.seq;
    this.toasts = [...this.toasts.filter((t) => t.id !== instead && t.tone === 'bad' && tone !== 'plain').slice(-1), { id, text, tone, action }];
    setTimeout(() => this.dismiss(id), tone === 'plain' ? 5_000 : 10_000);
    return id;
  }

  /** Another view came up: what was said about the last one is over. */
  endToasts(): void {
    this.toasts = this.toasts.filter((t) => t.tone !== 'plain');
  }

  /** Why a key did nothing, seen and heard for a moment. */
  hint(text: string): void {
    this.hinted = this.toast(text);
    this.say(text);
  }

  /** Another item came up: a hint was about the last one. */
  endHint(): void {
    this.dismiss(this.hinted);
  }

  /** The toast on show that can take back what it tells of. */
  get undoable(): Toast | undefined {
    return this.toasts.findLast((t) => t.action?.label === UNDO);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((t) => t.id !== id);
  }
}

export const ui = new UI();
