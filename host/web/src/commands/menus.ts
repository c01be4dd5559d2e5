// The menu of tasks: the same behind the row's button, the right mouse button and the menu key.
import { t } from '../i18n/index.svelte';
import { moveToQueue } from './actions';
import { command, menu } from './registry.svelte';
import { queueName } from './queues';
import { session } from './session.svelte';
import { tasks } from './tasks.svelte';
import { keyLabel } from './keys';

interface Item {
  label: string;
  hint?: string | undefined;
  isDangerous?: boolean | undefined;
  run: () => unknown;
}

/** Only what can be done now. */
export function taskMenu(): (Item | null)[] {
  const items: (Item | null)[] = [];
  for (const id of menu) {
    if (id === null) {
      if (items.length > 0 && items.at(-1) !== null) items.push(null);
      continue;
    }
    const one = command(id);
    if (!one.when()) continue;
    items.push({ label: t(one.label), hint: one.keys[0] ? keyLabel(one.keys[0]) : undefined, isDangerous: one.isDangerous, run: one.run });
    if (id === 'moveBottom' && session.slices.queues.length > 1) {
      const ids = tasks.targets();
      for (const queue of session.slices.queues) {
        items.push({ label: t('command.toQueue', { queue: queueName(queue) }), run: () => moveToQueue(ids, queue.queueId) });
      }
    }
  }
  while (items.at(-1) === null) items.pop();
  return items;
}
