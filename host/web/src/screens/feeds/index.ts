import Rss from '@lucide/svelte/icons/rss';
import type { Screen } from '../registry';

export default {
  name: 'feeds',
  title: 'nav.feeds',
  icon: Rss,
  order: 20,
  isListed: true,
  load: () => import('./Feeds.svelte'),
} satisfies Screen;
