import MonitorSmartphone from '@lucide/svelte/icons/monitor-smartphone';
import type { Screen } from '../registry';
import { link } from './link.svelte';

export default {
  name: 'devices',
  title: 'nav.devices',
  icon: MonitorSmartphone,
  order: 50,
  // A service without the device link has no such screen.
  get isListed() {
    return link.isThere;
  },
  load: () => import('./Devices.svelte'),
} satisfies Screen;
