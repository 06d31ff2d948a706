// What the keys and the parts of an open session of pi share: what it can be told, and telling it.
import { openPi } from './navigate';
import { api, failWords, unsure } from './api';
import { desk } from './desk.svelte';
import { plain } from './format';
import type { PiInfo, PiSession, PiTold } from './pitypes';
import { levelsOf, lives, working } from './piwords';
import { ui } from './ui.svelte';

class PiOpen {
  session = $state.raw<PiSession | null>(null);
  info = $state.raw<PiInfo | null>(null);
  /** Why the last thing was not done, beside what asked for it; where: a part of the view. */
  problem = $state<{ where: string; text: string } | null>(null);
  busy = $state(false);
  /** Grows with each prompt that begins something at once: the end of the transcript is where that is seen. */
  sent = $state(0);
  /** What the composer of a session that was gone along to begins with: a fork's prompt. */
  draft: { id: string; text: string } | null = null;

  get can(): { runs: boolean; works: boolean; models: boolean; thinks: boolean } | null {
    const { session: s, info } = this;
    if (!s || !info) return null;
    return { runs: lives(s.state), works: working(s.state), models: info.models.length > 0, thinks: levelsOf(info).length > 0 };
  }

  focus(what: string): void {
    setTimeout(() => document.querySelector<HTMLElement>(what)?.focus());
  }

  /** Tells the session something, says what came of it, and goes along where another session took its place. */
  async tell(id: string, told: PiTold, where: string): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.problem = null;
    const refused = (text: string) => { this.problem = { where, text }; };
    try {
      const r = await api.tellPi(id, told);
      if (r.vetoed) refused('An extension kept it from happening.');
      else if (!r.done && told.type === 'fork') refused('Pi has not forked it yet: an extension may be asking you something first.');
      if (r.path) ui.toast(`Saved as ${plain(r.path)}`);
      if (r.session !== undefined) await this.follow(r.session, told.type === 'fork');
      return r.vetoed !== true;
    } catch (e) {
      refused(failWords(e, unsure));
      desk.noticed(e);
      return false;
    } finally {
      this.busy = false;
    }
  }

  private async follow(id: string, forked: boolean): Promise<void> {
    this.draft = { id, text: forked ? await api.piSession(id).then((r) => r.info.prefill, () => '') : '' };
    openPi(id);
    ui.hint(forked ? 'Forked: this is the new session. The prompt is yours to change.' : 'This is the new session; the other one has ended.');
  }

  async stop(): Promise<void> {
    if (!this.session) return;
    await api.stopPi(this.session.id).catch((e: unknown) => { this.problem = { where: 'composer', text: failWords(e, unsure) }; });
  }
}

export const piOpen = new PiOpen();
