// The columns of the list beside the name.
import type { PlainKey } from '../../i18n/index.svelte';
import type { SortKey } from '../../view/sort';

export interface Column {
  key: SortKey;
  label: PlainKey;
  width: number;
  isNumber: boolean;
}

export const NAME_MIN = 200;
export const MIN_WIDTH = 56;

export const columns: Record<SortKey, Column> = {
  name: { key: 'name', label: 'column.name', width: 0, isNumber: false },
  progress: { key: 'progress', label: 'column.progress', width: 184, isNumber: false },
  size: { key: 'size', label: 'column.size', width: 88, isNumber: true },
  speed: { key: 'speed', label: 'column.speed', width: 104, isNumber: true },
  left: { key: 'left', label: 'column.left', width: 92, isNumber: true },
  queue: { key: 'queue', label: 'column.queue', width: 96, isNumber: false },
  state: { key: 'state', label: 'column.state', width: 112, isNumber: false },
  site: { key: 'site', label: 'column.site', width: 140, isNumber: false },
  added: { key: 'added', label: 'column.added', width: 112, isNumber: true },
  finished: { key: 'finished', label: 'column.finished', width: 112, isNumber: true },
  order: { key: 'order', label: 'column.order', width: 64, isNumber: true },
};
