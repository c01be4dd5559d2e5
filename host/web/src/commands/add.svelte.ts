// The sheet that adds: what was pasted, its previews, and the requests that it becomes.
import type { CreateTaskRequest, GroupItemDto, ResolvePreviewResponse } from '../rpc/rpc';
import { paste, type Pasted } from '../view/links';
import { readTorrent, type Torrent } from '../view/torrent';
import { grow, type Tree } from '../view/tree';
import { session } from './session.svelte';
import { tasks } from './tasks.svelte';
import { t } from '../i18n/index.svelte';

/** What is left out has its default: the service requires the link alone. */
type NewTask = Partial<Omit<CreateTaskRequest, 'torrent'>> & { url: string; torrent?: Partial<CreateTaskRequest['torrent'] & object> };

const QUIET = 400;
const AT_ONCE = 8;
/** More links than this are added without previews. */
const MAX_PREVIEWS = 200;
const MAX_REQUESTS = 500;
/** Stays under 1 MiB with what is around it. */
const MAX_FRAME = 900_000;

export type Preview =
  | { state: 'none' | 'waiting' | 'loading' }
  | { state: 'failed'; message: string }
  | { state: 'done'; answer: ResolvePreviewResponse };

export class Entry {
  isTicked = $state(true);
  preview = $state.raw<Preview>({ state: 'none' });
  chosen = $state.raw<ReadonlySet<number>>(new Set());
  /** The quality of an item, by its place. */
  variants = $state.raw<Readonly<Record<number, string>>>({});
  closed = $state.raw<ReadonlySet<string>>(new Set());
  isOpen = $state(false);
  /** The task that has the same link. */
  duplicate = $state<string | null>(null);
  tree = $state.raw<Tree | null>(null);
  /** Of a torrent file. */
  torrent: Torrent | null = null;
  file: File | null = null;

  constructor(
    readonly key: string,
    readonly pasted: Pasted,
  ) {}

  get name(): string {
    if (this.torrent) return this.torrent.name;
    if (this.preview.state === 'done' && this.preview.answer.name !== '') return this.preview.answer.name;
    return this.pasted.name || this.pasted.url || this.pasted.text;
  }

  /** Files below, of a preview or a torrent. */
  get leaves(): readonly { path: string; size: number }[] {
    if (this.torrent) return this.torrent.files;
    if (this.preview.state !== 'done') return [];
    return this.preview.answer.items.map((item, at) => ({
      path: item.path === '' ? item.name : `${item.path}/${item.name}`,
      size: item.variants.find((variant) => variant.id === this.variants[at])?.size || item.size,
    }));
  }

  get count(): number {
    return this.tree ? this.chosen.size : 1;
  }

  get bytes(): number {
    const { leaves } = this;
    let sum = 0;
    for (const at of this.chosen) sum += leaves[at]?.size ?? 0;
    return sum;
  }

  get isUsable(): boolean {
    return this.pasted.kind !== 'unknown' || this.file !== null;
  }
}

export interface Options {
  saveDir: string;
  queueId: string;
  fileName: string;
  userAgent: string;
  referrer: string;
  cookies: string;
  headers: string;
  httpUser: string;
  httpPassword: string;
  saveLogin: boolean;
  proxyUrl: string;
  checksum: string;
  segments: number;
  limit: number;
  ignoreTls: boolean;
}

export const noOptions: Options = {
  saveDir: '', queueId: '', fileName: '', userAgent: '', referrer: '', cookies: '', headers: '', httpUser: '', httpPassword: '', saveLogin: false,
  proxyUrl: '', checksum: '', segments: 0, limit: 0, ignoreTls: false,
};

export class AddModel {
  text = $state('');
  entries = $state.raw<readonly Entry[]>([]);
  options = $state<Options>({ ...noOptions });
  isBusy = $state(false);
  problem = $state('');
  #known = new Map<string, Entry>();
  #links: Map<number, string> | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = 0;
  #isClosed = false;

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  setText(text: string): void {
    this.text = text;
    this.#read();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#preview(), QUIET);
  }

  #read(): void {
    const files = this.entries.filter((entry) => entry.file !== null);
    const found = paste(this.text).map((pasted) => {
      const key = `${pasted.kind} ${pasted.text}`;
      let entry = this.#known.get(key);
      if (!entry) {
        entry = new Entry(key, pasted);
        entry.duplicate = this.#duplicate(pasted.link);
        if (entry.duplicate !== null || !entry.isUsable) entry.isTicked = false;
        this.#known.set(key, entry);
      }
      return entry;
    });
    this.entries = [...files, ...found];
  }

  #duplicate(link: number): string | null {
    if (link === 0) return null;
    if (!this.#links) {
      const { columns } = session.store;
      this.#links = new Map();
      for (let slot = 0; slot < columns.length; slot++) if (columns.ids[slot] !== '') this.#links.set(columns.link[slot]!, columns.ids[slot]!);
    }
    return this.#links.get(link) ?? null;
  }

  async addFiles(files: readonly File[]): Promise<void> {
    for (const file of files) {
      const pasted = { ...paste('x')[0]!, text: file.name, name: file.name };
      const entry = new Entry(`file ${file.name} ${file.size} ${file.lastModified}`, pasted);
      if (this.entries.some((one) => one.key === entry.key)) continue;
      if (/\.(torrent)$/i.test(file.name)) {
        entry.file = file;
        try {
          entry.torrent = readTorrent(new Uint8Array(await file.arrayBuffer()));
          this.#setTree(entry, new Set(entry.torrent.files.keys()));
        } catch (error) {
          entry.preview = { state: 'failed', message: error instanceof Error ? error.message : String(error) };
        }
      } else if (/\.(metalink|meta4)$/i.test(file.name)) {
        entry.file = file;
      } else if (file.size < 1_000_000) {
        // A list of links.
        this.setText([this.text, await file.text()].filter(Boolean).join('\n'));
        continue;
      } else {
        entry.preview = { state: 'failed', message: t('add.notAList') };
      }
      this.entries = [entry, ...this.entries];
    }
  }

  drop(entry: Entry): void {
    this.entries = this.entries.filter((one) => one !== entry);
    if (entry.file === null) this.text = this.text.replace(entry.pasted.text, '').replace(/\n{2,}/g, '\n').trim();
  }

  #setTree(entry: Entry, chosen: ReadonlySet<number>): void {
    entry.tree = grow(entry.leaves);
    entry.chosen = chosen;
    entry.isOpen = entry.leaves.length > 1;
  }

  #preview(): void {
    const wanted = this.entries.filter((entry) => (entry.pasted.kind === 'link' || entry.pasted.kind === 'curl') && /^https?:/i.test(entry.pasted.url));
    for (const entry of wanted.slice(0, MAX_PREVIEWS)) if (entry.preview.state === 'none') entry.preview = { state: 'waiting' };
    this.#next();
  }

  #next(): void {
    while (this.#running < AT_ONCE && !this.#isClosed) {
      const entry = this.entries.find((one) => one.preview.state === 'waiting');
      if (!entry) return;
      this.#running++;
      void this.load(entry).finally(() => {
        this.#running--;
        this.#next();
      });
    }
  }

  async load(entry: Entry): Promise<void> {
    entry.preview = { state: 'loading' };
    const { url, cookies, referrer, userAgent, headers } = entry.pasted;
    try {
      const answer = await session.call('daemon.group.resolvePreview', { url, cookies, referrer, userAgent, extraHeaders: headers });
      if (answer.error !== '') {
        entry.preview = { state: 'failed', message: answer.error };
        return;
      }
      entry.preview = { state: 'done', answer };
      if (answer.items.length > 0) {
        const chosen = answer.items.flatMap((item, at) => (item.selected && item.kind !== 'folder' ? [at] : []));
        this.#setTree(entry, new Set(chosen));
      }
    } catch (error) {
      entry.preview = { state: 'failed', message: error instanceof Error ? error.message : String(error) };
    }
  }

  get ticked(): readonly Entry[] {
    return this.entries.filter((entry) => entry.isTicked && entry.isUsable && entry.count > 0);
  }

  /** Adds all that is ticked; returns how many tasks there are more, or nothing if something failed. */
  async submit(startPaused: boolean): Promise<number | null> {
    this.isBusy = true;
    this.problem = '';
    let added = 0;
    try {
      const entries = this.ticked;
      const single: { request: NewTask; entry: Entry }[] = [];
      for (const entry of entries) {
        if (entry.preview.state === 'done' && entry.preview.answer.items.length > 0) {
          added += await this.#group(entry, startPaused);
          this.drop(entry);
        } else if (entry.file && !entry.torrent) {
          added += await this.#metalink(entry, startPaused);
          this.drop(entry);
        } else single.push({ request: await this.#request(entry, startPaused, entries.length === 1), entry });
      }
      let batch: typeof single = [];
      let size = 0;
      const send = async (): Promise<void> => {
        if (batch.length === 0) return;
        const { taskIds, messages } = await session.call('daemon.task.createMany', { requests: batch.map(({ request }) => request as CreateTaskRequest) });
        added += taskIds.length;
        tasks.free();
        if (messages && messages.length > 0) this.notes = [...this.notes, ...messages];
        for (const { entry } of batch) this.drop(entry);
        batch = [];
        size = 0;
      };
      for (const one of single) {
        const length = JSON.stringify(one.request).length;
        if (batch.length >= MAX_REQUESTS || size + length > MAX_FRAME) await send();
        batch.push(one);
        size += length;
      }
      await send();
      return added;
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      return null;
    } finally {
      this.isBusy = false;
    }
  }

  /** What the service has to say about tasks that it made. */
  notes: readonly string[] = [];

  #common(startPaused: boolean): Omit<NewTask, 'url'> {
    const { options } = this;
    const common: Omit<NewTask, 'url'> = { saveDir: options.saveDir, queueId: options.queueId, startPaused };
    if (options.userAgent !== '') common.userAgent = options.userAgent;
    if (options.referrer !== '') common.referrer = options.referrer;
    if (options.cookies !== '') common.cookies = options.cookies;
    if (options.proxyUrl !== '') common.proxyUrl = options.proxyUrl;
    if (options.segments > 0) common.segments = options.segments;
    if (options.limit > 0) common.speedLimitBytes = options.limit;
    if (options.ignoreTls) common.ignoreTlsErrors = true;
    if (options.httpUser !== '') {
      common.httpUser = options.httpUser;
      common.httpPassword = options.httpPassword;
      common.saveSiteAuth = options.saveLogin;
    }
    const headers = parseHeaders(options.headers);
    if (Object.keys(headers).length > 0) common.headers = headers;
    return common;
  }

  async #request(entry: Entry, startPaused: boolean, isOnly: boolean): Promise<NewTask> {
    const { pasted } = entry;
    const common = this.#common(startPaused);
    const request: NewTask = { ...common, url: entry.file ? '' : pasted.url };
    if (isOnly && this.options.fileName !== '') request.fileName = this.options.fileName;
    if (isOnly && this.options.checksum !== '') request.checksum = this.options.checksum;
    if (entry.file) {
      request.torrentBlobId = await upload(entry.file);
      if (entry.torrent && entry.chosen.size < entry.torrent.files.length) {
        request.torrent = { files: [...entry.chosen].map((at) => entry.torrent!.files[at]!.index).sort((a, b) => a - b) };
      }
      return request;
    }
    if (pasted.kind !== 'curl') return request;
    if (pasted.name !== '' && !pasted.url.includes(pasted.name)) request.fileName ??= pasted.name;
    if (pasted.cookies !== '') request.cookies = pasted.cookies;
    if (pasted.referrer !== '') request.referrer = pasted.referrer;
    if (pasted.userAgent !== '') request.userAgent = pasted.userAgent;
    if (pasted.user !== '') {
      request.httpUser = pasted.user;
      request.httpPassword = pasted.password;
    }
    if (pasted.proxy !== '') request.proxyUrl = pasted.proxy;
    if (pasted.isInsecure) request.ignoreTlsErrors = true;
    if (pasted.method !== '' && pasted.method !== 'GET') request.method = pasted.method;
    const headers = { ...pasted.headers, ...common.headers };
    const contentType = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
    if (pasted.body !== '') request.body = { kind: 'raw', bytesB64: base64(pasted.body), contentType: contentType ?? 'application/x-www-form-urlencoded' };
    if (Object.keys(headers).length > 0) request.headers = headers;
    return request;
  }

  async #group(entry: Entry, startPaused: boolean): Promise<number> {
    const { preview, pasted } = entry;
    if (preview.state !== 'done') return 0;
    const { answer } = preview;
    const items: GroupItemDto[] = [...entry.chosen].sort((a, b) => a - b).map((at) => {
      const item = answer.items[at]!;
      const variant = item.variants.find((one) => one.id === entry.variants[at]) ?? item.variants[0];
      const known = variant ? (variant.sizeFromServer ? 0 : variant.size) : item.sizeFromServer ? 0 : item.size;
      const checksum = (variant?.checksum || item.checksum) ?? '';
      return {
        // Without a variant, an id with `@` is followed by one, so that it is not read as a variant.
        resolverItem: variant ? `${item.id}@${variant.id}` : item.id.includes('@') ? `${item.id}@` : item.id,
        fileName: item.name,
        relPath: item.path,
        size: known,
        ...(checksum === '' ? {} : { checksum }),
      };
    });
    const common = this.#common(startPaused);
    const { taskIds } = await session.call('daemon.group.create', {
      sourceUrl: answer.sourceUrl || pasted.url,
      groupName: answer.name || pasted.host,
      saveDir: this.options.saveDir,
      queueId: this.options.queueId,
      segments: common.segments ?? 0,
      cookies: common.cookies || pasted.cookies,
      referrer: common.referrer || pasted.referrer,
      userAgent: common.userAgent || pasted.userAgent,
      proxyUrl: common.proxyUrl || pasted.proxy,
      extraHeaders: { ...pasted.headers, ...common.headers },
      ignoreTlsErrors: common.ignoreTlsErrors ?? pasted.isInsecure,
      startPaused,
      items,
      ...(answer.leftOut ? { leftOut: answer.leftOut } : {}),
    });
    return taskIds.length;
  }

  async #metalink(entry: Entry, startPaused: boolean): Promise<number> {
    const bytes = new Uint8Array(await entry.file!.arrayBuffer());
    let binary = '';
    for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    const { taskIds } = await session.call('daemon.task.create', { request: { ...this.#common(startPaused), url: '', metalinkB64: btoa(binary) } as CreateTaskRequest });
    tasks.free();
    return taskIds?.length ?? 1;
  }
}

async function upload(file: File): Promise<string> {
  const answer = await session.fetch('api/web/blobs/torrents', { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: file });
  const said = (await answer.json()) as { blobId?: string; message?: string };
  if (!answer.ok || !said.blobId) throw new Error(said.message ?? String(answer.status));
  return said.blobId;
}

function base64(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** `Name: value` on each line. */
export function parseHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
  }
  return headers;
}
