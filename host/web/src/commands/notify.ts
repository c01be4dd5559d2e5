// Notes of the browser when downloads finish while the page is hidden. The user turns them on.
import { t } from '../i18n/index.svelte';
import { preferences } from './preferences.svelte';

/** Browsers offer them on https and localhost only. */
export const canNotify: boolean = globalThis.isSecureContext && 'Notification' in globalThis;

/** Asks the browser; must be called from a click. */
export async function allowNotifications(): Promise<boolean> {
  if (!canNotify) return false;
  const isAllowed = (await Notification.requestPermission()) === 'granted';
  preferences.set('notifyFinished', isAllowed);
  return isAllowed;
}

export function notifyFinished(parts: readonly string[]): void {
  if (!canNotify || !document.hidden || !preferences.values.notifyFinished || Notification.permission !== 'granted') return;
  const note = new Notification(t('app.name'), { body: parts.join('\n'), tag: 'svc-finished' });
  note.onclick = () => {
    focus();
    note.close();
  };
}
