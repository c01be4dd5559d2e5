import Store from '@lucide/svelte/icons/store';
import type { Screen } from '../registry';

export default {
  name: 'market',
  title: 'nav.market',
  icon: Store,
  order: 40,
  isListed: true,
  load: () => import('./Market.svelte'),
} satisfies Screen;
