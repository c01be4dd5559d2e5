import ArrowDownToLine from '@lucide/svelte/icons/arrow-down-to-line';
import type { Screen } from '../registry';

export default {
  name: 'tasks',
  title: 'nav.tasks',
  icon: ArrowDownToLine,
  order: 0,
  isListed: true,
  load: () => import('./Tasks.svelte'),
} satisfies Screen;
