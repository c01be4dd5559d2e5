import Settings from '@lucide/svelte/icons/settings';
import type { Screen } from '../registry';

export default {
  name: 'settings',
  title: 'nav.settings',
  icon: Settings,
  order: 70,
  isListed: true,
  load: () => import('./Settings.svelte'),
} satisfies Screen;
