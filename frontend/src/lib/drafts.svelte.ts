// What was half typed, kept per item while the person moves around and the item is refetched. In memory only.
import { initial, spoken, type Field, type Raw } from './schemaform';

/** `arguments`: a call is being edited; `review`: its changes are looked at before they are sent. */
export type Editor = 'answer' | 'comment' | 'decline' | 'arguments' | 'review' | null;

export class Draft {
  editor = $state<Editor>(null);
  /** The editor was just opened by the person and takes the focus once; coming back to it later does not. */
  grab = false;
  answer = $state('');
  comment = $state('');
  /** The form, without its secret fields: those live in the form itself and die with it. */
  values = $state<Raw>({});
  private start: Raw = {};
  private fields: readonly Field[] = [];
  checks = $state<boolean[] | null>(null);
  /** Arguments of a call as they were typed, by name; those that were not touched are not here. */
  args = $state.raw<ReadonlyMap<string, string>>(new Map());

  /** Gives every field of the form a value, keeping what was typed. */
  prepare(fs: readonly Field[]): void {
    const start = initial(fs);
    this.start = start;
    this.fields = fs;
    for (const f of fs) if (!f.sensitive && this.values[f.slot] === undefined) this.values[f.slot] = start[f.slot] ?? '';
  }

  /** What the person wrote, to keep when it can no longer be sent. */
  get written(): { label: string; text: string }[] {
    const list = [{ label: '', text: this.answer }];
    for (const f of this.fields) {
      const v = this.values[f.slot] ?? '';
      if (v !== (this.start[f.slot] ?? '')) list.push({ label: f.label, text: v === '' ? '' : spoken(f, v) });
    }
    for (const [name, text] of this.args) list.push({ label: name, text });
    list.push({ label: 'Comment', text: this.comment });
    return list.filter((w) => w.text.trim() !== '');
  }

  get empty(): boolean {
    return this.answer === '' && this.comment === '' && this.checks === null && this.args.size === 0 && Object.values(this.values).every((v) => v === '');
  }
}

export class Drafts {
  // not reactive itself: a draft is made while it is read, and its fields are what components follow
  private readonly all = new Map<string, Draft>();

  of(id: string): Draft {
    let draft = this.all.get(id);
    if (!draft) {
      draft = new Draft();
      this.all.set(id, draft);
    }
    return draft;
  }

  has(id: string): boolean {
    const draft = this.all.get(id);
    return draft !== undefined && !draft.empty;
  }

  /** The person went elsewhere: what was not confirmed is over, what was typed stays. */
  leave(id: string): void {
    const draft = this.all.get(id);
    if (draft?.editor === 'decline') draft.editor = null;
    if (draft?.editor === 'review') draft.editor = 'arguments';
  }

  drop(id: string): void {
    this.all.delete(id);
  }
}

export const drafts = new Drafts();

/** What is being written to a session of pi. */
export class Prompt {
  text = $state('');
  images = $state.raw<readonly { mime: string; data: string; name: string }[]>([]);
}

/** The prompts that are being written, by their sessions. */
export class Prompts {
  private readonly all = new Map<string, Prompt>();

  of(id: string): Prompt {
    let prompt = this.all.get(id);
    if (!prompt) {
      prompt = new Prompt();
      this.all.set(id, prompt);
    }
    return prompt;
  }
}

export const prompts = new Prompts();
