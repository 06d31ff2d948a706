// How this person wants it to look. Kept in this browser or window only.

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'comfortable' | 'compact';

const KEY = 'deskbell.look';

interface Stored { theme?: Theme; density?: Density; contrast?: boolean; welcomed?: boolean }

function load(): Stored {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return stored && typeof stored === 'object' ? (stored as Stored) : {};
  } catch {
    return {};
  }
}

class Prefs {
  theme = $state<Theme>('system');
  density = $state<Density>('comfortable');
  contrast = $state(false);
  /** The first-run page was finished or skipped. */
  welcomed = $state(false);
  private readonly system = matchMedia('(prefers-color-scheme: dark)');
  rowHeight = $derived(this.density === 'compact' ? 32 : 44);

  constructor() {
    const s = load();
    if (s.theme === 'light' || s.theme === 'dark') this.theme = s.theme;
    if (s.density === 'compact') this.density = 'compact';
    this.contrast = s.contrast === true;
    this.welcomed = s.welcomed === true;
    this.apply();
    this.system.addEventListener('change', () => this.apply());
    const more = matchMedia('(prefers-contrast: more)');
    if (s.contrast === undefined && more.matches) { this.contrast = true; this.apply(); }
  }

  set(patch: Stored): void {
    Object.assign(this, patch);
    this.apply();
    const { theme, density, contrast, welcomed } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ theme, density, contrast, welcomed }));
    } catch {
      // private mode: the choice lasts as long as the page
    }
  }

  get dark(): boolean {
    return this.theme === 'dark' || (this.theme === 'system' && this.system.matches);
  }

  private apply(): void {
    const root = document.documentElement;
    root.dataset['scheme'] = this.dark ? 'dark' : 'light';
    root.dataset['density'] = this.density;
    root.toggleAttribute('data-contrast', this.contrast);
  }
}

export const prefs = new Prefs();
