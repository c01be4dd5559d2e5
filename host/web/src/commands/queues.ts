// The two queues that every service begins with have their names in the user's language, until they are renamed.
import { t } from '../i18n/index.svelte';
import type { QueueDto } from '../rpc/rpc';

export function queueName(queue: Pick<QueueDto, 'queueId' | 'name'>): string {
  if (queue.queueId === 'main' && queue.name === 'main') return t('queues.main');
  if (queue.queueId === 'later' && queue.name === 'later') return t('queues.later');
  return queue.name;
}
