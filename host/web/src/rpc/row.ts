// What the list keeps of a task. Everything else is fetched when a task is opened.
import { failureKinds, type FailureKind, type ServerDto, type TaskDto } from './rpc';

export const Status = { pending: 0, downloading: 1, paused: 2, completed: 3, error: 4, preparing: 5 } as const;

export const Flag = { torrent: 1, fileMissing: 2, seeding: 4, loginNeed: 8, feed: 16, sizeUnknown: 32 } as const;

/** Kinds by number; 0 is none. A kind of a newer service reads as `internal`. */
export function failureNumber(kind: string): number {
  if (kind === '') return 0;
  const at = failureKinds.indexOf(kind as FailureKind);
  return (at < 0 ? failureKinds.indexOf('internal') : at) + 1;
}

export const mediaKinds = ['other', 'video', 'audio', 'image', 'archive', 'document', 'program', 'disk', 'subtitle'] as const;
export type MediaKind = (typeof mediaKinds)[number];

const extensions: Record<Exclude<MediaKind, 'other'>, string> = {
  video: 'mp4 mkv webm avi mov wmv flv m4v mpg mpeg ts m2ts 3gp ogv vob rmvb',
  audio: 'mp3 flac m4a aac ogg opus wav wma ape aiff alac mka',
  image: 'jpg jpeg png gif webp avif bmp tif tiff svg heic heif dng raw cr2 cr3 nef arw psd jxl',
  archive: 'zip rar 7z gz tgz xz txz bz2 tbz2 zst tzst tar lz lz4 lzma cab br z',
  document: 'pdf epub mobi azw3 djvu doc docx xls xlsx ppt pptx odt ods odp txt md csv json xml html htm rtf tex',
  program: 'exe msi apk aab deb rpm appimage flatpak snap pkg jar whl crx xpi bin run sh',
  disk: 'iso img dmg vhd vhdx vmdk qcow2 ova',
  subtitle: 'srt ass ssa vtt sub idx sup',
};

const kindOf = new Map<string, number>();
for (const [kind, names] of Object.entries(extensions)) {
  for (const name of names.split(' ')) kindOf.set(name, mediaKinds.indexOf(kind as MediaKind));
}

export function mediaNumber(name: string): number {
  const dot = name.lastIndexOf('.');
  return dot <= 0 ? 0 : (kindOf.get(name.slice(dot + 1).toLowerCase()) ?? 0);
}

/** The host of a link without `www.`; of a magnet link nothing. */
export function siteOf(url: string): string {
  const found = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/i.exec(url);
  return found ? found[1]!.toLowerCase().replace(/^www\./, '') : '';
}

/** 53 bits of a text, to find the same link again without keeping the links of all tasks. */
export function hash53(text: string): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return 4294967296 * (2097151 & b) + (a >>> 0);
}

/** A link as it is compared: without its fragment, host in lower case. */
export function sameLink(url: string): string {
  const cut = url.split('#', 1)[0]!;
  return cut.replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?]*)/i, (origin) => origin.toLowerCase());
}

export interface Row {
  id: string;
  name: string;
  status: number;
  error: number;
  total: number;
  done: number;
  queue: string;
  group: string;
  site: string;
  created: number;
  completed: number;
  retryAt: number;
  order: number;
  flags: number;
  media: number;
  link: number;
  /** Its tags, one on each line. */
  tags: string;
}

/** Fields at their default may be missing on the wire. */
export function rowOf(task: Partial<TaskDto> & { taskId: string }): Row {
  const url = task.url ?? '';
  const shown = task.originUrl ? task.originUrl : url;
  const hash = task.infoHash ?? '';
  const name = task.fileName ?? '';
  let flags = 0;
  if (hash !== '' || /^magnet:/i.test(url)) flags |= Flag.torrent;
  if (task.fileMissing) flags |= Flag.fileMissing;
  if (task.seedingStatus === 1 || task.seedingStatus === 8) flags |= Flag.seeding;
  if (task.loginNeed) flags |= Flag.loginNeed;
  if (task.rssSourceId) flags |= Flag.feed;
  return {
    id: task.taskId,
    name: name === '' ? shown : name,
    status: task.status ?? 0,
    error: failureNumber(task.errorKind ?? ''),
    total: task.totalBytes ?? 0,
    done: task.downloadedBytes ?? 0,
    queue: task.queueId ?? '',
    group: task.groupId ?? '',
    site: siteOf(shown),
    created: Number(task.createdAt ?? 0) || 0,
    completed: Number(task.completedAt ?? 0) || 0,
    retryAt: Number(task.continuesAt ?? 0) || 0,
    order: task.queueOrder ?? 0,
    flags,
    media: mediaNumber(name),
    link: hash53(hash === '' ? sameLink(shown) : `btih:${hash.toLowerCase()}`),
    tags: (task.tags ?? []).join('\n'),
  };
}

/** What a running task says several times a second. */
export interface Sample {
  id: string;
  done: number;
  total: number;
  down: number;
  up: number;
  connections: number;
  peers: number;
  /** Start, end and downloaded bytes of each segment, then 1 if it is active: at most 1,024 segments. */
  segments: Float64Array;
  /** Of the watched task. */
  servers?: ServerDto[];
}
