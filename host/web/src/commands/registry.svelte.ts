// Every command once: the bar, the menus, the palette and the list of keys are made from this.
import type { PlainKey } from '../i18n/index.svelte';
import { Status } from '../rpc/row';
import * as act from './actions';
import { overlays } from './overlay.svelte';
import { preferences } from './preferences.svelte';
import { route } from './route.svelte';
import { session } from './session.svelte';
import { tasks } from './tasks.svelte';

export interface Command {
  id: string;
  label: PlainKey;
  /** As `KeyboardEvent.key`, with `Ctrl+`, `Shift+`, `Alt+` in this order; a sequence has a space. */
  keys: readonly string[];
  group: 'tasks' | 'list' | 'page' | 'go';
  when: () => boolean;
  isDangerous?: boolean;
  run: () => unknown;
}

const targets = (): string[] => tasks.targets();
const has = (): boolean => targets().length > 0 && session.canWrite;
const one = (): string | null => {
  const found = targets();
  return found.length === 1 ? found[0]! : null;
};
const statuses = (): number[] => tasks.slots(targets()).map((slot) => session.store.columns.status[slot]!);
const isOnTasks = (): boolean => route.name === 'tasks';
const some = (test: (status: number) => boolean) => (): boolean => isOnTasks() && has() && statuses().some(test);
const exactly = (test: (status: number) => boolean = () => true) => (): boolean => isOnTasks() && session.canWrite && one() !== null && statuses().every(test);

/** Whether there is one task whose file the desktop beside this page can open. */
const opens = (): boolean => act.canOpen() && exactly((status) => status === Status.completed)();

function step(by: 1 | -1): void {
  const at = tasks.indexOf(tasks.selection.active);
  const id = tasks.idAt(at + by);
  if (id !== null) tasks.selectOnly(id);
}

export function openDetails(id: string | null): void {
  route.change({ o: id });
}

export const commands: readonly Command[] = [
  { id: 'add', label: 'command.addLong', keys: ['n'], group: 'page', when: () => session.machine.phase !== 'login', run: () => overlays.open({ kind: 'add', text: '' }) },
  { id: 'search', label: 'command.search', keys: ['/'], group: 'page', when: () => true, run: focusSearch },
  { id: 'palette', label: 'command.palette', keys: ['Ctrl+k'], group: 'page', when: () => true, run: () => overlays.open({ kind: 'palette' }) },
  { id: 'help', label: 'command.help', keys: ['?'], group: 'page', when: () => true, run: () => overlays.open({ kind: 'help' }) },
  { id: 'needs', label: 'command.needs', keys: ['!'], group: 'page', when: () => session.hasState, run: () => overlays.open({ kind: 'needs' }) },
  { id: 'pause', label: 'command.pause', keys: [], group: 'tasks', when: some(act.isRunning), run: () => act.pause(targets()) },
  { id: 'resume', label: 'command.resume', keys: [], group: 'tasks', when: some(act.isHalted), run: () => act.resume(targets()) },
  { id: 'toggle', label: 'command.toggle', keys: ['p'], group: 'tasks', when: some((status) => act.isRunning(status) || act.isHalted(status)), run: () => act.toggle(targets()) },
  { id: 'retry', label: 'command.retry', keys: ['r'], group: 'tasks', when: some((status) => status === Status.error || status === Status.pending), run: () => act.resume(targets()) },
  { id: 'details', label: 'command.details', keys: ['Enter'], group: 'tasks', when: () => isOnTasks() && tasks.selection.active !== null, run: () => openDetails(tasks.selection.active) },
  { id: 'rename', label: 'command.rename', keys: ['F2'], group: 'tasks', when: exactly(), run: () => overlays.open({ kind: 'rename', id: one()! }) },
  { id: 'replaceLink', label: 'command.replaceLink', keys: ['u'], group: 'tasks', when: exactly((status) => status !== Status.completed), run: () => overlays.open({ kind: 'link', id: one()! }) },
  { id: 'otherFolder', label: 'command.otherFolder', keys: [], group: 'tasks', when: some((status) => status !== Status.completed), run: () => overlays.open({ kind: 'folder', ids: targets() }) },
  { id: 'copyLink', label: 'command.copyLink', keys: ['Ctrl+c'], group: 'tasks', when: () => isOnTasks() && targets().length > 0 && session.isLive, run: () => act.copyLinks(targets()) },
  { id: 'openFile', label: 'command.openFile', keys: ['o'], group: 'tasks', when: opens, run: () => act.openFile(one()!, false) },
  { id: 'reveal', label: 'command.reveal', keys: [], group: 'tasks', when: opens, run: () => act.openFile(one()!, true) },
  { id: 'save', label: 'command.save', keys: ['s'], group: 'tasks', when: exactly((status) => status === Status.completed), run: () => act.save(one()!) },
  { id: 'boost', label: 'command.boost', keys: ['b'], group: 'tasks', when: exactly((status) => status !== Status.completed), run: () => act.boost(one()!) },
  { id: 'moveTop', label: 'command.moveTop', keys: ['Alt+Home'], group: 'tasks', when: some((status) => status !== Status.completed), run: () => act.reorder(targets(), 'top') },
  { id: 'moveUp', label: 'command.moveUp', keys: ['Alt+ArrowUp'], group: 'tasks', when: some((status) => status !== Status.completed), run: () => act.reorder(targets(), 'up') },
  { id: 'moveDown', label: 'command.moveDown', keys: ['Alt+ArrowDown'], group: 'tasks', when: some((status) => status !== Status.completed), run: () => act.reorder(targets(), 'down') },
  { id: 'moveBottom', label: 'command.moveBottom', keys: ['Alt+End'], group: 'tasks', when: some((status) => status !== Status.completed), run: () => act.reorder(targets(), 'bottom') },
  { id: 'remove', label: 'command.remove', keys: ['Delete'], group: 'tasks', when: () => isOnTasks() && has(), run: () => act.remove(targets()) },
  { id: 'removeFiles', label: 'command.removeFiles', keys: ['Shift+Delete'], group: 'tasks', when: () => isOnTasks() && has(), isDangerous: true, run: () => overlays.open({ kind: 'remove', ids: targets() }) },
  { id: 'selectAll', label: 'command.selectAll', keys: ['Ctrl+a'], group: 'list', when: () => isOnTasks() && tasks.list.length > 0, run: () => tasks.selectAll() },
  { id: 'clear', label: 'command.clear', keys: ['Escape'], group: 'list', when: () => isOnTasks() && tasks.selection.ids.size > 0, run: () => tasks.clear() },
  { id: 'next', label: 'command.next', keys: [']'], group: 'list', when: isOnTasks, run: () => step(1) },
  { id: 'previous', label: 'command.previous', keys: ['['], group: 'list', when: isOnTasks, run: () => step(-1) },
  { id: 'pauseAll', label: 'command.pauseAll', keys: [], group: 'tasks', when: () => session.canWrite, run: () => act.attempt(() => session.call('daemon.task.pauseAll', undefined)) },
  { id: 'resumeAll', label: 'command.resumeAll', keys: [], group: 'tasks', when: () => session.canWrite, run: () => act.attempt(() => session.call('daemon.task.resumeAll', undefined)) },
  { id: 'turtle', label: 'command.turtle', keys: ['t'], group: 'page', when: () => session.canWrite && 'turtle_enabled' in session.slices.config.values, run: switchTurtle },
  { id: 'theme', label: 'command.theme', keys: [], group: 'page', when: () => true, run: switchTheme },
  { id: 'density', label: 'command.density', keys: [], group: 'page', when: () => true, run: () => preferences.set('density', preferences.values.density === 'compact' ? 'comfortable' : 'compact') },
  { id: 'signOut', label: 'command.signOut', keys: [], group: 'page', when: () => session.hasState, run: () => session.signOut() },
];

/** Commands of the bar, the row's menu and the context menu, in their order; null is a line. */
export const menu: readonly (string | null)[] = [
  'details', 'openFile', 'reveal', 'save', null, 'pause', 'resume', 'retry', 'boost', null, 'rename', 'replaceLink', 'otherFolder', 'copyLink', null, 'moveTop',
  'moveUp', 'moveDown', 'moveBottom', null, 'remove', 'removeFiles',
];

export function command(id: string): Command {
  const found = commands.find((one) => one.id === id);
  if (!found) throw new Error(`no command ${id}`);
  return found;
}

export function isDark(): boolean {
  const { theme } = preferences.values;
  return theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
}

export function isTurtle(): boolean {
  return session.slices.config.values['turtle_enabled'] === 'true';
}

function switchTurtle(): unknown {
  const values = { turtle_enabled: String(!isTurtle()) };
  return act.attempt(() => session.call('daemon.config.patch', { expectedRevision: session.slices.config.revision, values }));
}

function switchTheme(): void {
  preferences.set('theme', isDark() ? 'light' : 'dark');
}

/** Frames in which the screen of tasks is waited for: one second. */
const SEARCH_FRAMES = 60;

function focusSearch(): void {
  if (route.name !== 'tasks') route.go('tasks');
  // At once, because what is typed next belongs into it; from another screen, once the screen is there.
  const look = (left: number): void => {
    const field = document.querySelector<HTMLInputElement>('[data-search]');
    if (field) field.focus();
    else if (left > 0) requestAnimationFrame(() => look(left - 1));
  };
  look(SEARCH_FRAMES);
}

/** The name of a pressed key as commands write it. */
export function keyName(event: KeyboardEvent): string {
  const { key } = event;
  const isLetter = key.length === 1;
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push('Ctrl');
  // Shift is part of a printed sign already.
  if (event.shiftKey && !isLetter) parts.push('Shift');
  if (event.altKey) parts.push('Alt');
  return [...parts, isLetter ? key.toLowerCase() : key].join('+');
}
