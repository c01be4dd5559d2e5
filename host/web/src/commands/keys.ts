// Keys of the whole page, from the registry.
import { t } from '../i18n/index.svelte';
import { overlays } from './overlay.svelte';
import { preferences } from './preferences.svelte';
import { commands, keyName, openDetails } from './registry.svelte';
import { route } from './route.svelte';
import { tasks } from './tasks.svelte';

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** A key as it is printed on keyboards. */
export function keyLabel(key: string): string {
  const names: Record<string, string> = {
    ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Delete: t('key.delete'), Escape: t('key.escape'), Enter: t('key.enter'),
    Home: t('key.home'), End: t('key.end'), ' ': t('key.space'), Ctrl: isMac ? '⌘' : t('key.ctrl'), Shift: t('key.shift'), Alt: isMac ? '⌥' : t('key.alt'),
  };
  return key.split('+').map((part) => names[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(isMac ? '' : '+');
}

/** `g`, then a letter. */
export const places: Record<string, string> = { t: 'tasks', q: 'queues', f: 'feeds', p: 'plugins', m: 'market', d: 'devices', s: 'settings' };

let isGoing = false;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !(target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type));
}

export function pageKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const name = keyName(event);
  if (isTyping(event.target) && !(name.startsWith('Ctrl+') && name === 'Ctrl+k')) return;
  if (document.querySelector('dialog[open], [role=menu]:popover-open')) return;
  const isSingle = name.length === 1;
  if (isSingle && !preferences.values.singleKeys) return;
  if (isGoing && isSingle) {
    isGoing = false;
    const place = places[name];
    if (place) {
      event.preventDefault();
      route.go(place);
    }
    return;
  }
  if (name === 'g') {
    isGoing = true;
    setTimeout(() => (isGoing = false), 1500);
    return;
  }
  // Text that is selected is copied as text.
  if (name === 'Ctrl+c' && (getSelection()?.toString() ?? '') !== '') return;
  if (name === 'Enter' && event.target instanceof HTMLElement && event.target.closest('button, a, input')) return;
  if (name === 'Escape') {
    // The topmost goes first: the drawer, then the selection, then the filter.
    if (route.query.get('o') !== null) openDetails(null);
    else if (tasks.selection.ids.size > 0) tasks.clear();
    else if (route.name === 'tasks' && tasks.filter !== '') tasks.setFilter([]);
    else return;
    event.preventDefault();
    return;
  }
  const found = commands.find((one) => one.keys.includes(name) && one.when());
  if (!found) return;
  event.preventDefault();
  found.run();
}

/** Text and files that are pasted outside of a field open the sheet. */
export function pagePaste(event: ClipboardEvent, addFiles: (files: File[]) => void): void {
  if (isTyping(event.target) || overlays.current !== null) return;
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length > 0) {
    event.preventDefault();
    addFiles(files);
    return;
  }
  const text = event.clipboardData?.getData('text/plain').trim() ?? '';
  if (text === '') return;
  event.preventDefault();
  overlays.open({ kind: 'add', text });
}
