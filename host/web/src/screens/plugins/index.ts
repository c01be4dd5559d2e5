import Puzzle from '@lucide/svelte/icons/puzzle';
import type { Screen } from '../registry';

export default {
  name: 'plugins',
  title: 'nav.plugins',
  icon: Puzzle,
  order: 30,
  isListed: true,
  load: () => import('./Plugins.svelte'),
} satisfies Screen;
