// Why a command cannot act right now, in words; '' where that goes without saying, null where it can.
import type { CommandId } from './keys';
import { moment } from './format';
import { asksLeave, stateName } from './itemwords';
import type { Detail, Row } from './types';

/** What the commands are about to act on. */
export interface Scene {
  /** The view is a list of items. */
  box: boolean;
  rows: number;
  unread: boolean;
  selected: boolean;
  /** The item pane is on screen: in a narrow window it may be behind the list. */
  shown: boolean;
  row: Pick<Row, 'kind' | 'state' | 'box' | 'ask' | 'expires_at'> | null;
  detail: Detail | null;
  /** Something can still be taken back. */
  held: boolean;
  /** It was asked for by its key, and not in the palette. */
  byKey: boolean;
  /** The view is one where rules are meant. */
  rules: boolean;
  /** The view is one where conversations begin. */
  talks: boolean;
  /** The view is the list of sessions of pi. */
  pis: boolean;
  /** A rule has the focus. */
  rule: boolean;
  /** What the session of pi that is open can be told now; null: none is open. */
  pi: { runs: boolean; works: boolean; models: boolean; thinks: boolean } | null;
}

const deciding: ReadonlySet<CommandId> = new Set(['choose', 'allow', 'write', 'comment', 'decline', 'send']);
const inBox: ReadonlySet<CommandId> = new Set(['first', 'last', 'star', 'unread', 'mark-all-read']);

export function whyNot(id: CommandId, s: Scene): string | null {
  if (deciding.has(id)) return whyNotDecide(id, s);
  switch (id) {
    case 'undo': return s.held ? null : 'Nothing can be taken back: nothing was just put away, and no decision waits to be sent.';
    case 'snooze':
      if (!s.selected || !s.row) return nothing(s);
      if (s.row.box === 'fleet') return 'Messages between agents cannot be snoozed: they wait for the other agent.';
      if (s.row.state === 'open' && s.row.ask === 'call') return `A call cannot be snoozed: it waits${s.row.expires_at ? ` until ${moment(s.row.expires_at, Date.now())}` : ''}.`;
      return s.row.state === 'open' ? null : s.row.kind === 'notice' ? 'A notice waits for nothing: there is nothing to snooze.' : `It is ${over(s.row.state)} already: there is nothing to snooze.`;
    case 'archive':
      if (!s.selected || !s.row) return nothing(s);
      if (s.row.box === 'fleet') return 'Messages between agents are a record: they stay.';
      return s.row.state === 'open' ? (s.row.ask === 'call' ? 'It is still open: answer it first.' : 'It is still open: answer it, or snooze it with z.') : null;
    case 'mark-all-read': return s.box && s.unread ? null : '';
    case 'new-rule': return s.byKey && !s.rules ? 'Rules are made under Guardian and Rules: g r.' : null;
    case 'new-talk': return s.byKey && !s.talks ? 'Conversations begin under Conversations: g v.' : null;
    case 'new-pi': return s.byKey && !s.pis ? 'Sessions of pi are started under Pi: g p.' : null;
    case 'rule-up': case 'rule-down': return s.rule ? null : s.rules ? 'Select a rule first: j.' : '';
    case 'pi-write': case 'pi-model': case 'pi-thinking': case 'pi-fork': case 'pi-stop': return whyNotPi(id, s.pi);
    case 'star': case 'unread': return s.selected ? null : nothing(s);
    default: return inBox.has(id) && !s.box ? '' : null;
  }
}

function whyNotPi(id: CommandId, pi: Scene['pi']): string | null {
  if (!pi) return '';
  if (!pi.runs) return 'This session does not run now. Take it up again first.';
  if (id === 'pi-model' && !pi.models) return 'This pi does not say which models it has. /model provider/id may work.';
  if (id === 'pi-thinking' && !pi.thinks) return 'The model that it uses does not think in levels.';
  if (id === 'pi-stop' && !pi.works) return 'It does nothing now: there is nothing to stop.';
  return null;
}

const nothing = (s: Scene): string => (s.box && s.rows > 0 ? 'Select an item first: j.' : '');
const over = (state: Row['state']): string => stateName(state).toLowerCase();

function whyNotDecide(id: CommandId, s: Scene): string | null {
  if (!s.box) return '';
  if (!s.selected) return s.rows > 0 ? 'Select a question first: j.' : '';
  if (!s.shown) return 'Open it first: Enter.';
  const d = s.detail;
  if (!d) return null; // still loading: the command itself says so
  if (d.kind === 'notice') return 'A notice expects no answer.';
  if (d.state !== 'open') return `It is ${over(d.state)} already: nothing can be decided any more.`;
  if (d.held_decision) return 'Your decision is about to go out. Take it back first.';
  if (!d.answerable.ok) return 'It is not yours to answer.';
  const r = d.request;
  const takes = (value: string): boolean => r?.options?.some((o) => o.value === value) ?? false;
  switch (id) {
    case 'allow':
      if (!asksLeave(d)) return 'Only a call is allowed: answer this one with its number, or with w.';
      return takes('allow') ? null : 'This call cannot be allowed as it is asked.';
    case 'write':
      if (asksLeave(d)) return takes('allow_edited') ? null : 'The arguments of this call cannot be changed: allow it, or deny it with d.';
      if (d.action) return 'A task takes no answer: complete it, or dismiss it with d.';
      if (r?.mode === 'input') return null;
      if (!r?.allow_respond) return 'This agent takes no answer; it can only be declined.';
      return r.allow_edit ? null : 'This agent takes only one of its own choices.';
    case 'comment': return r?.no_comment ? 'Pi is sent the answer alone: a comment would reach nobody.' : null;
    case 'decline': return d.action || (asksLeave(d) && takes('deny')) || r?.allow_ignore ? null : 'This agent does not take a decline: it needs one of the answers.';
    case 'choose':
      if (d.action) return d.action.checklist.length ? null : 'This task has no steps to tick.';
      if (!r?.allow_respond) return 'This agent takes no answer; it can only be declined.';
      return r.mode === 'input' ? 'This one is a form: fill it in with w.' : null;
    default: return null;
  }
}
