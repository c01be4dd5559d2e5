// Copying where `navigator.clipboard` is missing: on plain http in a LAN.

/** Whether the text is in the clipboard now. */
export async function copyText(text: string): Promise<boolean> {
  if (globalThis.isSecureContext && 'clipboard' in navigator) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Without a permission the older way may still work.
    }
  }
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.className = 'visually-hidden';
  // Within an open dialog: outside of it nothing can have the focus.
  (before?.closest('dialog') ?? document.body).append(field);
  field.select();
  let done = false;
  try {
    done = document.execCommand('copy');
  } catch {
    done = false;
  }
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}
