import Inbox from '@lucide/svelte/icons/inbox';
import type { Screen } from '../registry';

export default {
  name: 'confirm',
  title: 'needs.title',
  icon: Inbox,
  order: 90,
  isListed: false,
  load: () => import('./Confirm.svelte'),
} satisfies Screen;
