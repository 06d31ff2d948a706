// The one table of keys. It feeds the handler, the help sheet and the palette.

export type CommandId =
  | 'next' | 'prev' | 'open' | 'back' | 'first' | 'last'
  | 'choose' | 'allow' | 'write' | 'comment' | 'decline' | 'send' | 'undo'
  | 'star' | 'snooze' | 'archive' | 'unread'
  | 'search' | 'go-needs' | 'go-waiting' | 'go-notices' | 'go-done' | 'go-archive' | 'go-agents' | 'go-sent' | 'go-fleet' | 'go-guardian' | 'go-pi' | 'go-rules' | 'go-conversations' | 'go-settings'
  | 'message' | 'new-talk' | 'new-rule' | 'rule-up' | 'rule-down'
  | 'new-pi' | 'pi-write' | 'pi-model' | 'pi-thinking' | 'pi-fork' | 'pi-stop'
  | 'help' | 'palette' | 'quit' | 'mark-all-read' | 'theme' | 'density';

export type Group = 'Move' | 'Decide' | 'Item' | 'Rules' | 'Pi' | 'Go to' | 'Window';
export const groups: readonly Group[] = ['Move', 'Decide', 'Item', 'Rules', 'Pi', 'Go to', 'Window'];

export interface Command {
  id: CommandId; group: Group; label: string;
  /** Chords, sequences with a space between ("g n"); empty when only the palette offers it. */
  keys: string[];
  /** A held-down key may repeat it. Nothing that decides may ever set this. */
  repeats?: boolean;
  /** Works while a text field has the focus. */
  whileTyping?: boolean;
  /** Works while a dialog or menu is open. */
  overDialogs?: boolean;
  /** Not in the palette: it needs a place or a number. */
  noPalette?: boolean;
}

export const commands: readonly Command[] = [
  { id: 'next', group: 'Move', label: 'Next item or row', keys: ['j', 'ArrowDown'], repeats: true },
  { id: 'prev', group: 'Move', label: 'Previous item or row', keys: ['k', 'ArrowUp'], repeats: true },
  { id: 'first', group: 'Move', label: 'First item', keys: ['Home'] },
  { id: 'last', group: 'Move', label: 'Last item', keys: ['End'] },
  { id: 'open', group: 'Move', label: 'Read the item', keys: ['Enter'] },
  { id: 'back', group: 'Move', label: 'Back, close, cancel', keys: ['Escape'], whileTyping: true },
  { id: 'search', group: 'Move', label: 'Search', keys: ['/'] },
  { id: 'message', group: 'Move', label: 'New message to an agent', keys: ['n'] },
  { id: 'new-talk', group: 'Move', label: 'New conversation, among the conversations', keys: ['b'] },

  { id: 'choose', group: 'Decide', label: 'Answer with that choice, tick that step', keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], noPalette: true },
  { id: 'allow', group: 'Decide', label: 'Allow a call: once, for the session, or always', keys: ['a'] },
  { id: 'write', group: 'Decide', label: 'Write another answer, fill in the form, edit a call', keys: ['w'] },
  { id: 'comment', group: 'Decide', label: 'Add a comment', keys: ['c'] },
  { id: 'decline', group: 'Decide', label: 'Decline, deny a call, or dismiss a task', keys: ['d'] },
  { id: 'send', group: 'Decide', label: 'Send what is written, complete a task', keys: ['Mod+Enter'], whileTyping: true, noPalette: true },
  { id: 'undo', group: 'Decide', label: 'Take back what was just put away, or the last decision while it is not sent yet', keys: ['Mod+z'] },

  { id: 'star', group: 'Item', label: 'Star this item', keys: ['s'] },
  { id: 'snooze', group: 'Item', label: 'Snooze this item', keys: ['z'] },
  { id: 'archive', group: 'Item', label: 'Archive this item', keys: ['e'] },
  { id: 'unread', group: 'Item', label: 'Mark unread', keys: ['u'] },
  { id: 'mark-all-read', group: 'Item', label: 'Mark everything here read', keys: [] },

  { id: 'new-rule', group: 'Rules', label: 'New rule, on the Guardian’s pages', keys: ['r'] },
  { id: 'rule-up', group: 'Rules', label: 'Move this rule up', keys: ['Mod+ArrowUp'], noPalette: true },
  { id: 'rule-down', group: 'Rules', label: 'Move this rule down', keys: ['Mod+ArrowDown'], noPalette: true },

  { id: 'new-pi', group: 'Pi', label: 'New session, on the page of pi', keys: ['p'] },
  { id: 'pi-write', group: 'Pi', label: 'Write to this session, or in a conversation', keys: ['i'] },
  { id: 'pi-model', group: 'Pi', label: 'Choose its model', keys: ['m'] },
  { id: 'pi-thinking', group: 'Pi', label: 'Choose how much it thinks', keys: ['t'] },
  { id: 'pi-fork', group: 'Pi', label: 'Fork it at one of your prompts', keys: ['f'] },
  { id: 'pi-stop', group: 'Pi', label: 'Stop what it does now', keys: ['Mod+.'], whileTyping: true },

  { id: 'go-needs', group: 'Go to', label: 'Needs you', keys: ['g n'] },
  { id: 'go-waiting', group: 'Go to', label: 'Waiting', keys: ['g w'] },
  { id: 'go-notices', group: 'Go to', label: 'Notices', keys: ['g t'] },
  { id: 'go-done', group: 'Go to', label: 'Done', keys: ['g d'] },
  { id: 'go-archive', group: 'Go to', label: 'Archive', keys: ['g e'] },
  { id: 'go-agents', group: 'Go to', label: 'Fleet: agents and their sessions', keys: ['g f', 'g a'] },
  { id: 'go-sent', group: 'Go to', label: 'Sent messages', keys: ['g m'] },
  { id: 'go-fleet', group: 'Go to', label: 'Between agents', keys: ['g b'] },
  { id: 'go-guardian', group: 'Go to', label: 'Guardian: sessions of guarded agents', keys: ['g g'] },
  { id: 'go-pi', group: 'Go to', label: 'Sessions of pi', keys: ['g p'] },
  { id: 'go-rules', group: 'Go to', label: 'Rules', keys: ['g r'] },
  { id: 'go-conversations', group: 'Go to', label: 'Conversations of agents', keys: ['g v'] },
  { id: 'go-settings', group: 'Go to', label: 'Settings', keys: ['g s'] },

  { id: 'palette', group: 'Window', label: 'Command palette', keys: ['Mod+k'], whileTyping: true, overDialogs: true, noPalette: true },
  { id: 'help', group: 'Window', label: 'Keys', keys: ['?'], overDialogs: true },
  { id: 'quit', group: 'Window', label: 'Quit (in the desktop window)', keys: ['Mod+q'], whileTyping: true, overDialogs: true, noPalette: true },
  { id: 'theme', group: 'Window', label: 'Switch between light and dark', keys: [] },
  { id: 'density', group: 'Window', label: 'Switch between comfortable and compact rows', keys: [] },
];

const byId = new Map(commands.map((c) => [c.id, c]));
export const command = (id: CommandId): Command => byId.get(id) as Command;

const byChord = new Map<string, Command>();
const prefixes = new Set<string>();
for (const c of commands) {
  for (const key of c.keys) {
    byChord.set(key, c);
    const [first, second] = key.split(' ');
    if (first && second) prefixes.add(first);
  }
}

/** What a keydown says, without the DOM, so that it can be tested. */
export interface KeyPress {
  key: string; code: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean; shiftKey: boolean;
  repeat: boolean; isComposing: boolean; keyCode?: number;
}

/** The layout-independent name of the key: what is printed on it, or where it sits when the layout has no Latin letters. */
export function chord(e: KeyPress): string | null {
  if (e.altKey || e.key === 'Dead' || e.key === 'Process' || e.key === 'Unidentified') return null;
  const mod = e.ctrlKey || e.metaKey;
  let key = e.key;
  if (key.length === 1) {
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(e.code)?.[1];
    const letter = /^Key([A-Z])$/.exec(e.code)?.[1];
    if (/[1-9]/.test(key)) { /* as printed */ }
    else if (digit && !e.shiftKey) key = digit;
    else if (key.charCodeAt(0) > 127 && letter) key = letter.toLowerCase();
    else if (key.charCodeAt(0) > 127 && e.code === 'Slash') key = e.shiftKey ? '?' : '/';
    if (e.shiftKey && /[a-zA-Z]/.test(key)) return mod ? `Mod+Shift+${key.toLowerCase()}` : null;
    if (/[A-Z]/.test(key)) key = key.toLowerCase(); // caps lock
  }
  return mod ? `Mod+${key}` : key;
}

export interface Context { typing: boolean; dialog: boolean }
export type Match = { command: Command; key: string } | 'pending' | null;

const SEQUENCE_MS = 1500;
const STUTTER_MS = 40;

/** Turns key presses into commands: sequences, held keys, composition, typing and dialogs are its business. */
export class KeyReader {
  private prefix = '';
  private prefixAt = 0;
  private readonly down = new Map<string, number>();

  press(e: KeyPress, ctx: Context, now: number): Match {
    if (e.isComposing || e.keyCode === 229) return null;
    // Some toolkits never set `repeat`, and some send a keyup before each repetition: both are seen here.
    const last = this.down.get(e.code);
    const held = e.repeat || (last !== undefined && last > 0);
    const stutter = last !== undefined && last <= 0 && now + last < STUTTER_MS;
    this.down.set(e.code, Math.max(now, 1));
    const name = chord(e);
    if (name === null) return null;

    if (this.prefix && now - this.prefixAt < SEQUENCE_MS && !ctx.typing && !ctx.dialog) {
      const found = byChord.get(`${this.prefix} ${name}`);
      this.prefix = '';
      if (found && !held) return { command: found, key: name };
      if (held) return null;
    }
    this.prefix = '';
    if (prefixes.has(name) && !ctx.typing && !ctx.dialog) {
      if (held) return null;
      this.prefix = name;
      this.prefixAt = now;
      return 'pending';
    }
    const found = byChord.get(name);
    if (!found) return null;
    if (ctx.typing && !found.whileTyping) return null;
    if (ctx.dialog && !found.overDialogs) return null;
    if (held && !found.repeats) return null;
    if (stutter && found.group === 'Decide') return null;
    return { command: found, key: name };
  }

  /** A released key keeps its time, negated, for the stutter check. */
  release(code: string, now: number, wasModifier: boolean): void {
    if (wasModifier) this.down.clear(); // while a modifier is down, some systems swallow the keyups of others
    else this.down.set(code, -now);
  }

  reset(): void {
    this.down.clear();
    this.prefix = '';
  }
}

/** Whether the element takes text, so that plain keys belong to it. */
export function takesText(el: { tagName?: string; type?: string; isContentEditable?: boolean } | null): boolean {
  if (!el) return false;
  if (el.isContentEditable) return true;
  const tag = el.tagName?.toUpperCase();
  if (tag === 'TEXTAREA' || tag === 'SELECT') return true;
  return tag === 'INPUT' && !['checkbox', 'radio', 'button', 'submit', 'reset'].includes(el.type ?? 'text');
}

const mac = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.userAgent);
const printed: Record<string, string> = {
  ArrowDown: '↓', ArrowUp: '↑', Enter: '↵', Escape: 'Esc', Mod: mac ? '⌘' : 'Ctrl',
};

/** The caps to draw for a chord: "Mod+Enter" → ["Ctrl", "↵"], "g n" → ["g", "n"]. */
export function caps(key: string): string[] {
  return key.split(/[+ ]/).map((k) => printed[k] ?? (k.length === 1 && key.includes('+') ? k.toUpperCase() : k));
}

/** How the sheet shows all of a command's keys: the digits as one range. */
export function shownKeys(c: Command): string[][] {
  if (c.id === 'choose') return [['1'], ['…'], ['9']];
  return c.keys.map(caps);
}
