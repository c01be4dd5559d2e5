import MonitorSmartphone from '@lucide/svelte/icons/monitor-smartphone';
import type { Screen } from '../registry';

export default {
  name: 'devices',
  title: 'nav.devices',
  icon: MonitorSmartphone,
  order: 50,
  isListed: true,
  load: () => import('./Devices.svelte'),
} satisfies Screen;
