// Into the form: its first field that is still empty, or else its first.
const CONTROL = 'input:not([type="radio"], [type="checkbox"]), select, textarea';

function empty(field: HTMLElement): boolean {
  const control = field.querySelector<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(CONTROL);
  return control ? control.value === '' : field.querySelector('input:checked') === null;
}

/** Whether there was a form to go to. */
export function focusField(): boolean {
  const fields = [...document.querySelectorAll<HTMLElement>('[data-decision] [data-form] [data-field]')];
  const field = fields.find(empty) ?? fields[0];
  const control = field?.querySelector<HTMLElement>('input:checked') ?? field?.querySelector<HTMLElement>('input, select, textarea');
  if (!field || !control) return false;
  control.focus({ preventScroll: true });
  field.scrollIntoView({ block: 'nearest' });
  return true;
}
