// The operator's rules, in their order, and the sheet in which one is written. Loaded while somebody looks.
import { tick } from 'svelte';
import { api, failWords, unsure } from './api';
import { desk } from './desk.svelte';
import type { RuleOffer, RuleView } from './guardtypes';
import { Loaded } from './loaded.svelte';
import type { Detail } from './types';
import { ui } from './ui.svelte';

/** What the open sheet is for: answering a call for longer, a new rule, or changing one. */
export type Sheet =
  | { kind: 'grant'; item: string; offer: RuleOffer; comment: string }
  | { kind: 'new' }
  | { kind: 'change'; rule: RuleView };

class Rules extends Loaded<{ rules: RuleView[]; revoked: RuleView[] }> {
  sheet = $state.raw<Sheet | null>(null);
  /** The open menu: how long a verdict on this item shall hold. */
  menu = $state.raw<{ detail: Detail; verdict: 'allow' | 'deny' } | null>(null);
  /** What the open confirmation is about. */
  doomed = $state.raw<RuleView | null>(null);
  private busy = false;

  constructor() {
    super(() => api.rules(), { rules: [], revoked: [] }, ['rules', 'guardian']); // guardian: a rule was used
  }

  get rules(): RuleView[] { return this.it.rules; }
  get revoked(): RuleView[] { return this.it.revoked; }

  /** Moves a rule one place up (-1) or down (1). Rules change places by putting the lower one before the upper one. */
  async move(id: string, step: -1 | 1): Promise<void> {
    const at = this.rules.findIndex((r) => r.id === id);
    const upper = this.rules[step < 0 ? at - 1 : at];
    const lower = this.rules[step < 0 ? at : at + 1];
    if (at < 0 || !upper || !lower || this.busy) return;
    const held = document.activeElement?.closest(`[data-rule="${CSS.escape(id)}"]`) ? document.activeElement.getAttribute('aria-label') : undefined;
    this.busy = true;
    const problem = await this.attempt(() => api.changeRule(lower.id, bodyOf(lower, upper.id)));
    this.busy = false;
    if (problem) ui.toast(problem, 'bad');
    else if (held !== undefined) void tick().then(() => keepFocus(id, held));
    if (!problem) ui.say(`Rule ${this.rules.findIndex((r) => r.id === id) + 1} of ${this.rules.length}`);
  }

  /** Does one thing to the rules and loads them again; answers with what the hub has against it. */
  async attempt(what: () => Promise<unknown>): Promise<string> {
    try {
      await what();
    } catch (e) {
      desk.noticed(e);
      return failWords(e, unsure);
    }
    await this.load();
    return '';
  }

  open(sheet: Sheet): void {
    this.sheet = sheet;
    ui.overlay = 'rule';
  }

  /** Asks how long the verdict shall hold. */
  ask(detail: Detail, verdict: 'allow' | 'deny'): void {
    this.menu = { detail, verdict };
    ui.overlay = 'grant';
  }

  revoke(rule: RuleView): void {
    this.doomed = rule;
    ui.overlay = 'revoke';
  }
}

/** The focus goes with the rule that was moved: to the same button, or to the rule where that can do no more. */
function keepFocus(id: string, label: string | null): void {
  const row = document.querySelector(`[data-rule="${CSS.escape(id)}"]`);
  const same = label === null ? null : row?.querySelector<HTMLElement>(`[aria-label="${CSS.escape(label)}"]:not(:disabled)`);
  (same ?? row?.querySelector<HTMLElement>('[data-stop]'))?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: 'nearest' });
}

/** A rule as it is sent back with another place. */
function bodyOf(r: RuleView, before: string) {
  const reason = r.reason_text;
  return { verdict: r.verdict, match: r.match, ...(reason === '' ? {} : { reason }), before };
}

export const rules = new Rules();
