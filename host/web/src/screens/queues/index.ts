import ListOrdered from '@lucide/svelte/icons/list-ordered';
import type { Screen } from '../registry';

export default {
  name: 'queues',
  title: 'nav.queues',
  icon: ListOrdered,
  order: 10,
  isListed: true,
  load: () => import('./Queues.svelte'),
} satisfies Screen;
