// The view and what is open in it are in the address, so that a reload comes back to them: #/needs/msg_…, #/agents/NAME,
// #/guardian/PROTOCOL%2FSESSION, #/pi/SESSION, #/rules/RULE, #/conversations/ID
import { inbox } from './inbox.svelte';
import { reader } from './reader.svelte';
import { isBox, isView, ui, type View } from './ui.svelte';

export interface Place { view: View; id: string | null }

/** Views besides the boxes in which one thing can be open. */
const withPages: readonly string[] = ['agents', 'guardian', 'pi', 'rules', 'conversations'] satisfies View[];

export function parseAddress(hash: string): Place | null {
  const [, view = '', id] = hash.replace(/^#/, '').split('/');
  if (!isView(view)) return null;
  if (id === undefined || id === '' || !(isBox(view) || withPages.includes(view))) return { view, id: null };
  try {
    return { view, id: decodeURIComponent(id) };
  } catch {
    return { view, id: null };
  }
}

export function address(place: Place): string {
  return `#/${place.view}${place.id === null ? '' : `/${encodeURIComponent(place.id)}`}`;
}

export function openFromAddress(): void {
  const place = parseAddress(location.hash);
  if (place) ui.view = place.view;
  void inbox.show({ box: isBox(ui.view) ? ui.view : 'needs', scope: ui.view === 'fleet' ? 'fleet' : 'all' });
  if (place?.view === 'agents') ui.agent = place.id;
  else if (place?.view === 'guardian') ui.session = place.id;
  else if (place?.view === 'pi') ui.pi = place.id;
  else if (place?.view === 'rules') ui.rule = place.id;
  else if (place?.view === 'conversations') ui.talk = place.id;
  else if (place?.id) {
    reader.open(place.id);
    ui.pane = 'item';
  }
}

/** Where the person is. */
export function presentAddress(): string {
  const page = { agents: ui.agent, guardian: ui.session, pi: ui.pi, rules: ui.rule, conversations: ui.talk } as Partial<Record<View, string | null>>;
  return address({ view: ui.view, id: isBox(ui.view) ? inbox.selectedId : (page[ui.view] ?? null) });
}

/** Call while a component is being set up. */
export function keepAddress(): void {
  let first = true;
  $effect(() => {
    const hash = presentAddress();
    if (first) { first = false; return; }
    if (location.hash !== hash && !location.hash.startsWith('#ticket=')) history.replaceState(null, '', hash);
  });
}
