// Why an item was taken or left, in words.
import { RssItemStatus } from '../../rpc/rpc';
import { lookup } from '../../i18n/index.svelte';
import type { Tone } from '../../ui/types';

/** The service's own name stands where this page knows none. */
export function reasonOf(reason: string): string {
  return reason === '' ? '' : (lookup(`feeds.reason.${reason}`) ?? reason);
}

export const states: Record<RssItemStatus, { word: 'new' | 'downloaded' | 'ignored' | 'left' | 'duplicate' | 'seeded'; tone: Tone }> = {
  [RssItemStatus.New]: { word: 'new', tone: 'accent' },
  [RssItemStatus.Downloaded]: { word: 'downloaded', tone: 'ok' },
  [RssItemStatus.Ignored]: { word: 'ignored', tone: 'plain' },
  [RssItemStatus.RuleMiss]: { word: 'left', tone: 'plain' },
  [RssItemStatus.DuplicateEpisode]: { word: 'duplicate', tone: 'plain' },
  [RssItemStatus.Seeded]: { word: 'seeded', tone: 'plain' },
};
