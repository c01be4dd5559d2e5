/**
 * What a plugin written in JavaScript finds. There is nothing to import: all of this is global.
 *
 * A plugin is an ES module that exports `resolve` and, if it has more to say, `more`, `linkFor` and `preview`;
 * or one that exports `feed`, or `onStart`, `onMetaProbed`, `onDone` and `onError`:
 *
 * ```js
 * /// <reference path="svc-plugin.d.ts" />
 * // @ts-check
 *
 * /** @type {svc.Resolve} *\/
 * export async function resolve(call, out) {
 *   const share = await http.get(`https://api.acme.example/share/${call.url.segments[1]}`).send();
 *   out.title(share.json('/title'));
 *   for (const file of share.json('/files')) out.add(file.id, file.name).size(file.size);
 * }
 * ```
 *
 * The functions need not be `async`. There are no timers, files, processes or sockets, and nothing lasts from call to call but `storage`.
 */

declare namespace svc {
  /** Adds what is behind the call's URL to `out`, or answers with it. `PluginError('notMatched')` lets another plugin try. */
  type Resolve = (call: Call, out: Listing) => Promise<Answer>;
  /** Adds the files of the page that an earlier `out.nextPage(token)` named. */
  type More = (call: Call, token: string, out: Listing) => Promise<Answer>;
  /** Where a file is. Asked when its download begins and again when the link has ended; not needed if entries have links. */
  type LinkFor = (call: Call, entry: string, variant?: string) => Promise<Link | URL | string>;
  /** As `resolve`, for a quick look: half the time, no links needed. */
  type Preview = Resolve;

  /**
   * Adds what a feed says now to `out`. The fields that the user fills in for a source (`feed.config` in the manifest) are
   * read as settings are; secret ones go to the host of the source's URL only.
   */
  type ReadFeed = (call: FeedCall, out: Feed) => Promise<void> | void;

  /**
   * Hooks: `onStart`, `onMetaProbed`, `onDone` and `onError` are told what becomes of downloads, of the events that
   * `hook.events` of the manifest names. They have five seconds and delay no download.
   */
  type Hook = (event: HookEvent) => Promise<void> | void;
  /** `onError` may ask for another try, which counts as one of the automatic ones. */
  type ErrorHook = (event: HookEvent) => Promise<RetryRequest | void> | RetryRequest | void;
  interface RetryRequest {
    /** In milliseconds; an automatic retry that would be later is not hurried. */
    delayMs: number;
  }

  /** What became of a download. */
  interface HookEvent {
    readonly event: 'start' | 'metaProbed' | 'done' | 'error';
    readonly taskId: string;
    /** What the user gave, without a login. */
    readonly url: URL;
    /** The name of the file, and not where it is. */
    readonly fileName?: string;
    readonly totalBytes?: number;
    /** Of a failure: its kind as the API of the service names it, and the text that users see. */
    readonly errorKind?: string;
    readonly message?: string;
    /** Automatic retries so far. */
    readonly attempts: number;
  }

  /** Files may be answered instead of added: one, several, or several with a title. */
  type Answer = void | null | string | Link | File | File[] | { title?: string; files: File[] };
  interface File {
    url: string | URL | Link;
    /** The last part of the URL, if there is none. */
    name?: string;
    id?: string;
    size?: number;
    folder?: string;
    headers?: Record<string, string>;
  }

  interface Call {
    readonly url: URL;
    /** What the user gave to open the share. */
    readonly password?: string;
  }

  interface FeedCall {
    readonly url: URL;
    /** When the source was last read, in milliseconds of the Unix epoch: older items may be left out. */
    readonly since?: number;
    /** What the call before gave to `out.etag`. */
    readonly etag?: string;
  }

  /** What a feed says now. The host knows which items it has seen, so a feed may list them again. */
  interface Feed {
    /** The name of a source that the user gave none. */
    title(text: string): this;
    /** The next call has it as `call.etag`. With the etag of this call, and without items, nothing has changed. */
    etag(text: string): this;
    /** Asks the host not to call again for so many seconds. */
    ttl(seconds: number): this;
    /**
     * Adds an item. The guid must be the same in every call; if it is empty, the host makes one of where the item leads.
     * The link is the page about the item, which it may lack if it has an enclosure.
     */
    add(guid: string | number, title: string, link?: string | URL): Item;
  }

  /** An item of a feed. */
  interface Item {
    /** In milliseconds of the Unix epoch. */
    published(time: number): this;
    summary(text: string): this;
    /** Of its file, or of all files of its torrent, in bytes. */
    size(bytes: number | bigint): this;
    /** Its file. */
    enclosure(url: string | URL, mediaType?: string): this;
    /** Of its torrent, in hexadecimal digits. */
    infohash(hex: string): this;
    /** Its link is a page whose files a resolver lists, of this plugin or another one. */
    resolveWithPlugin(): this;
  }

  type Kind = 'file' | 'folder' | 'videoStream' | 'audioStream' | 'subtitle' | 'image';
  type LeftOut = 'unreadable' | 'tooManyFiles' | 'tooManyFolders' | 'tooDeep';
  type Checksum = 'md5' | 'sha1' | 'sha256' | 'sha512' | 'crc32' | 'blake3';
  type Hash = 'md5' | 'sha1' | 'sha256' | 'sha512';
  type Encoding = 'hex' | 'base64' | 'base64url';
  type Fields = Record<string, string | number | boolean> | Iterable<[string, string | number | boolean]>;

  /** The files behind a URL. */
  interface Listing {
    /** What it is called as a whole; files are put into a folder of this name. */
    title(text: string): this;
    description(text: string): this;
    cover(url: string | URL): this;
    /** Adds a file. The host comes back with `id` when it wants its link. */
    add(id: string | number, name: string): Entry;
    /** There is more; the host calls `more` with this token. */
    nextPage(token: string): this;
    askPassword(prompt: string): this;
    /**
     * Tells the user that something is not in the listing: the folder (empty: several, or the listing itself), and how
     * many (0: unknown).
     */
    leftOut(why: LeftOut, name?: string, count?: number): this;
  }

  /** A file of a listing, or a variant of one. */
  interface Entry {
    kind(kind: Kind): this;
    /** The folder it belongs into, below the listing's own, with slashes. */
    folder(path: string): this;
    /** In bytes. */
    size(bytes: number | bigint): this;
    /** In milliseconds of the Unix epoch. */
    modified(time: number): this;
    checksum(algorithm: Checksum, hex: string): this;
    mediaType(type: string): this;
    thumbnail(url: string | URL): this;
    /** In milliseconds. */
    duration(ms: number): this;
    selected(isSelected: boolean): this;
    /** Leaves it out unless the user wants it. */
    notSelected(): this;
    /** Where it is, so that nobody asks later. Not for links that end soon. */
    link(link: Link | URL | string): this;
    /** Adds a quality or format; the higher the rank the better. */
    variant(id: string, label: string, rank?: number): Entry;
  }

  /** What a login shows. It is empty in each step; a step that leaves it empty leaves the one before in its place. */
  interface Screen {
    message(text: string): this;
    /** A QR code that works for so many seconds; the hint is what to scan it with. */
    qr(payload: string, seconds: number, hint?: string): this;
    /** The script reads its value, and users are told so. */
    field(key: string, label: string): this;
    /** Its value goes to the account's secrets; the script gets its name, for templates. */
    secretField(key: string, label: string): this;
    /**
     * A page for the user's browser. With `until`, the user gives the URL back that it ends at: its parameters are secret
     * answers, `url.code`, except `url.state`.
     */
    openUrl(url: string, until?: string): this;
    /** `poll` is called again so many milliseconds later; without it, only an answer goes on. */
    pollAfter(ms: number): this;
    /** The login has succeeded, with this account. */
    done(id: string, name?: string): this;
    /** When the account's session ends, in milliseconds of the Unix epoch: `refresh` is called before. */
    expires(time: number): this;
    expiresIn(seconds: number): this;
  }

  interface LoginCall {
    /** The account's slot in the manifest. */
    readonly slot: string;
    readonly mode: 'qr' | 'password' | 'cookie' | 'browser';
  }

  /** A login, as `export const login`. The script's own variables last as long as the login; responses of earlier steps are empty. */
  interface Login {
    start(call: LoginCall, screen: Screen): void | Promise<void>;
    poll?(call: LoginCall, screen: Screen): void | Promise<void>;
    /** Secret answers are the names of secrets of the account. */
    answer?(call: LoginCall, values: Record<string, string>, screen: Screen): void | Promise<void>;
    /** Whether the session is still good. */
    check?(call: { readonly slot: string }, screen: Screen): boolean | Promise<boolean>;
    /** Gets a new session without the user, or throws `loginRequired`. */
    refresh?(call: { readonly slot: string }, screen: Screen): void | Promise<void>;
    /** Tells the site. The host forgets the account in any case. */
    logout?(call: { readonly slot: string }, screen: Screen): void | Promise<void>;
  }

  /** A request that is being put together; `send` sends it. What is sent without awaiting in between goes side by side. */
  interface Request {
    header(name: string, value: string): this;
    headers(fields: Fields): this;
    /** Adds parameters to the URL. */
    query(name: string, value: string | number | boolean): this;
    query(fields: Fields): this;
    bytes(body: Uint8Array | ArrayBuffer): this;
    text(body: string, contentType?: string): this;
    json(body: unknown): this;
    form(fields: Fields): this;
    /** In milliseconds. */
    timeout(ms: number): this;
    /** Takes no longer body. */
    maxBytes(count: number): this;
    noRedirects(): this;
    noCookies(): this;
    /** Sends the cookies that the user gave for the task, too, to the task's own host. Nobody sees them here. */
    taskCookies(): this;
    /** Whose secrets and cookies are used: the account of a slot instead of the plugin itself. */
    account(slot: string): this;
    /** These bytes only; without `last`, all from `first` on. */
    range(first: number, last?: number): this;
    /** Lets the host answer the same request from memory for so many seconds. */
    cached(seconds: number): this;
    /** Keeps a value of the response as a secret, before anybody reads it here. */
    captureJson(pointer: string, secret: string): this;
    captureHeader(name: string, secret: string): this;
    /** The value of a cookie that any response on the way sets. */
    captureCookie(name: string, secret: string): this;
    /** The value of the first element that a selector selects: a hidden field of a form, a `meta`. */
    captureForm(css: string, secret: string): this;
    /** A field with a secret in it, `Bearer {token}`: the host puts it in, for the hosts that the manifest names. */
    secretHeader(name: string, template: string): this;
    secretQuery(name: string, template: string): this;
    secretForm(name: string, template: string): this;
    /** Puts a text with secrets in it at a place of the JSON body. */
    secretJson(pointer: string, template: string): this;
    /** A status that is no success is an error: 401 `loginRequired`, 404 `notFound`, 429 `rateLimited`, and so on. */
    send(): Promise<Response>;
    /** Every status is a response. */
    sendAny(): Promise<Response>;
  }

  /** A response. Its body stays with the host, which searches it; only what is found comes here. */
  interface Response {
    readonly status: number;
    /** Whether the status is between 200 and 299. */
    readonly ok: boolean;
    /** Where redirects have led. */
    readonly url: string;
    readonly headers: { get(name: string): string | null; has(name: string): boolean };
    header(name: string): string | undefined;
    headerAll(name: string): string[];
    text(): string;
    /** The body from where it was last read to. */
    bytes(): Uint8Array;
    /** The value that a JSON pointer leads to; without one, all of it. */
    json(pointer?: string): any;
    /** The elements of the page that a CSS selector selects. */
    select(css: string): Node[];
    /** What a group of a regular expression holds in each match. Run by the host, in linear time, in its syntax. */
    regex(pattern: string | RegExp, group?: number): string[];
    /** Itself, or the error that its status is. */
    checked(): this;
  }

  /** An element of a page; entities are decoded in `text` and the attributes. */
  interface Node {
    readonly tag: string;
    readonly text: string;
    readonly html: string;
    readonly attributes: Readonly<Record<string, string>>;
    attribute(name: string): string | undefined;
  }

  type Code = 'notMatched' | 'invalidInput' | 'notFound' | 'gone' | 'forbidden' | 'network' | 'denied' | 'parse'
    | 'unsupported' | 'internal';
}

/**
 * Why a plugin cannot do what it was asked. The host decides by the code whether it tries again, asks the user or supposes
 * that the site has changed (`parse`). Any other error is `internal`, with its line.
 */
declare class PluginError extends Error {
  constructor(code: svc.Code, detail?: string);
  /** The slot that must log in, if there is more than one. */
  constructor(code: 'loginRequired', slot?: string);
  constructor(code: 'captchaRequired', page: string);
  constructor(code: 'rateLimited', seconds?: number);
  constructor(code: 'upstream', status: number);
  readonly code: string;
  readonly detail: unknown;
}

/** Where a file is, and how to ask for it. */
declare class Link {
  constructor(url: string | URL);
  /** Another place of the same bytes. */
  mirror(url: string | URL): this;
  header(name: string, value: string): this;
  secretHeader(name: string, template: string): this;
  account(slot: string): this;
  /** Whether the site can send parts of it. */
  ranges(isSupported: boolean): this;
  /** It works once: nobody may try it out first. */
  singleUse(): this;
  /** It ends at this time, in milliseconds of the Unix epoch. */
  expires(time: number): this;
  expiresIn(seconds: number): this;
  maxConnections(count: number): this;
  /** The sound that belongs to these pictures. */
  audio(link: Link | URL | string): this;
  /** The URL leads to a description of the file. */
  manifest(kind: 'hls' | 'dash' | 'torrent'): this;
  /** The next segment of a file that is made of several: all of what is at the URL, or a part. */
  segment(url: string | URL, part?: { offset: number; length: number }): this;
  /** The segments from here on are encrypted (AES-128 in CBC mode) with the 16 bytes that are at the URL. */
  segmentKeyAt(url: string | URL, iv: Uint8Array): this;
  segmentKey(key: Uint8Array, iv: Uint8Array): this;
  /** The segments from here on are not encrypted. */
  noSegmentKey(): this;
}

/** As browsers have it, without user names; `segments` are the decoded parts of the path. */
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  readonly href: string;
  readonly protocol: string;
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly origin: string;
  readonly segments: string[];
  readonly searchParams: URLSearchParams;
  pathname: string;
  search: string;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams {
  constructor(init?: string | svc.Fields);
  readonly size: number;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  append(name: string, value: string | number | boolean): void;
  set(name: string, value: string | number | boolean): void;
  delete(name: string): void;
  forEach(each: (value: string, name: string, params: URLSearchParams) => void): void;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}

/** UTF-8. */
declare class TextEncoder {
  encode(text?: string): Uint8Array;
}

/** UTF-8. */
declare class TextDecoder {
  decode(bytes?: Uint8Array | ArrayBuffer): string;
}

declare const http: {
  get(url: string | URL): svc.Request;
  head(url: string | URL): svc.Request;
  post(url: string | URL): svc.Request;
  request(method: string, url: string | URL): svc.Request;
};

/** For scripts that were written for it. Every status is a response; `text` and `json` may be awaited. */
declare function fetch(url: string | URL, init?: {
  method?: string;
  headers?: svc.Fields;
  body?: string | Uint8Array | URLSearchParams;
  redirect?: 'follow' | 'manual';
}): Promise<svc.Response>;

/** Searching and decoding, done by the host. */
declare const text: {
  select(html: string, css: string): svc.Node[];
  /** All matches of a regular expression, each with its groups; group 0 is the match. */
  captures(pattern: string | RegExp, input: string): (string | undefined)[][];
  base64(text: string): Uint8Array;
  decryptAesCbc(key: Uint8Array, iv: Uint8Array, data: Uint8Array): Uint8Array;
  digest(algorithm: svc.Hash, data: Uint8Array | string): Uint8Array;
  hex(bytes: Uint8Array): string;
  encode(text: string): Uint8Array;
  decode(bytes: Uint8Array | ArrayBuffer): string;
  /** A name that is safe on every system. */
  filename(name: string): string;
};

/** What the plugin remembers between calls: values that JSON can hold, and no secrets. */
declare const storage: {
  get(key: string): any;
  set(key: string, value: unknown, seconds?: number): void;
  remove(key: string): void;
  keys(prefix?: string): string[];
};

/** The plugin's settings; a fallback gives the value its type. Secret settings are not among them: see `vault`. */
declare const settings: {
  get(key: string): string | undefined;
  get<T extends string | number | boolean>(key: string, fallback: T): T extends number ? number : T extends boolean ? boolean : string;
};

/** Secrets: what a plugin can use and never read. They are the user's secret settings and what requests have captured. */
declare const vault: {
  has(name: string, account?: string): boolean;
  forget(name: string, account?: string): void;
  /** The digest of a text with secrets in it, `{password}`. */
  digest(template: string, algorithm: svc.Hash, encoding?: svc.Encoding, account?: string): string;
  hmac(key: string, data: string, algorithm: svc.Hash, encoding?: svc.Encoding, account?: string): string;
};

/** Facts around the call. `Date` and `Math.random` take theirs from here, too, so a recorded call repeats. */
declare const env: {
  /** Milliseconds of the Unix epoch. */
  now(): number;
  monotonic(): number;
  random(count: number): Uint8Array;
  readonly locale: string;
  readonly hostVersion: string;
  hasFeature(name: string): boolean;
  /** Milliseconds that the call may still take. */
  timeLeft(): number;
};

declare const log: {
  trace(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  progress(done: number, total?: number, note?: string): void;
};

declare const console: {
  debug(...values: unknown[]): void;
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
};
