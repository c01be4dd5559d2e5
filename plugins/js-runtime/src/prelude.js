// What a plugin finds when it starts: the globals that plugin-sdk/js/svc-plugin.d.ts describes, over the few functions
// that the engine gives as `host`. Builders (requests, links, entries) only note down their steps; the engine replays
// them on the host's objects. Evaluates to what the engine calls.
(function (host) {
  'use strict';

  // ---------------------------------------------------------------- values

  // The host takes no halves of surrogate pairs.
  const string = (value) => String(value).toWellFormed();

  const whole = (value, what) => {
    const number = Number(value);
    if (!Number.isSafeInteger(number) || number < 0) throw new TypeError(`${what} is no whole number: ${value}`);
    return number;
  };

  const bytes = (value) => {
    if (value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    throw new TypeError('bytes are a Uint8Array');
  };

  const oneOf = (value, ...names) => {
    if (!names.includes(value)) throw new TypeError(`${string(value)} is none of ${names.join(', ')}`);
    return value;
  };

  const pairs = (fields) => {
    const entries = typeof fields?.[Symbol.iterator] === 'function' ? [...fields] : Object.entries(fields ?? {});
    return entries.map(([name, value]) => [string(name), string(value)]);
  };

  // ---------------------------------------------------------------- errors

  const CODES = new Set(['notMatched', 'invalidInput', 'loginRequired', 'captchaRequired', 'notFound', 'gone', 'forbidden',
    'rateLimited', 'upstream', 'network', 'denied', 'parse', 'unsupported', 'internal']);

  class PluginError extends Error {
    constructor(code, detail) {
      if (!CODES.has(code)) throw new TypeError(`${code} is no code of PluginError`);
      super(detail === undefined ? code : string(detail));
      this.name = 'PluginError';
      this.code = code;
      this.detail = detail;
    }
  }

  // What a host function answers where it can fail: `{ value }` or `{ error }`.
  const unwrap = (result, code) => {
    if (result.error !== undefined) throw new PluginError(code, result.error);
    return result.value;
  };

  const place = (error) => /plugin\.js:\d+(?::\d+)?/.exec(error?.stack ?? '')?.[0];

  // Whatever was thrown, as a code and what belongs to it.
  const describe = (error) => {
    if (error instanceof PluginError) return { code: error.code, detail: error.detail };
    const at = place(error);
    host.log('error', error?.stack ? `${error}\n${error.stack}` : string(error));
    return { code: 'internal', detail: at ? `${string(error)} (${at})` : string(error) };
  };

  // ---------------------------------------------------------------- URLs

  const encode = (text) => encodeURIComponent(string(text))
    .replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase()).replaceAll('%20', '+');

  const decode = (text) => {
    const spaced = text.replaceAll('+', ' ');
    try { return decodeURIComponent(spaced); } catch { return spaced; }
  };

  class URLSearchParams {
    #pairs;
    #changed;
    constructor(init = '', changed = () => {}) {
      this.#changed = changed;
      this.#pairs = typeof init === 'string'
        ? init.replace(/^\?/, '').split('&').filter(Boolean).map((pair) => {
          const [name, ...value] = pair.split('=');
          return [decode(name), decode(value.join('='))];
        })
        : pairs(init);
    }
    get size() { return this.#pairs.length; }
    get(name) { return this.#pairs.find(([other]) => other === name)?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([other]) => other === name).map(([, value]) => value); }
    has(name) { return this.#pairs.some(([other]) => other === name); }
    append(name, value) { this.#pairs.push([string(name), string(value)]); this.#changed(this); }
    delete(name) { this.#pairs = this.#pairs.filter(([other]) => other !== name); this.#changed(this); }
    set(name, value) {
      const found = this.#pairs.find(([other]) => other === name);
      if (found === undefined) return this.append(name, value);
      found[1] = string(value);
      this.#pairs = this.#pairs.filter((pair) => pair === found || pair[0] !== name);
      this.#changed(this);
    }
    forEach(each) { for (const [name, value] of this.#pairs) each(value, name, this); }
    *keys() { for (const [name] of this.#pairs) yield name; }
    *values() { for (const [, value] of this.#pairs) yield value; }
    *entries() { for (const [name, value] of this.#pairs) yield [name, value]; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&'); }
  }

  // The host has parsed and normalised it; this only finds the parts.
  const URL_PARTS = /^([^:/?#]+:)(?:\/\/(?:[^@/?#]*@)?([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/s;

  class URL {
    #parts;
    #params;
    constructor(url, base) {
      const reference = string(url);
      this.#take(unwrap(host.joinUrl(base === undefined ? reference : string(base), reference), 'parse'));
    }
    #take(href) {
      const [, protocol, authority = '', pathname, search = '', hash = ''] = URL_PARTS.exec(href);
      const [, hostname, port = ''] = /^(.*?)(?::(\d+))?$/.exec(authority);
      this.#parts = { href, protocol, host: authority, hostname, port, pathname,
        search: search === '?' ? '' : search, hash: hash === '#' ? '' : hash };
    }
    static canParse(url, base) { try { return Boolean(new URL(url, base)); } catch { return false; } }
    static parse(url, base) { try { return new URL(url, base); } catch { return null; } }
    get href() { return this.#parts.href; }
    get protocol() { return this.#parts.protocol; }
    get host() { return this.#parts.host; }
    get hostname() { return this.#parts.hostname; }
    get port() { return this.#parts.port; }
    get pathname() { return this.#parts.pathname; }
    get search() { return this.#parts.search; }
    get hash() { return this.#parts.hash; }
    get origin() { return `${this.protocol}//${this.host}`; }
    get segments() { return unwrap(host.pathSegments(this.href), 'parse'); }
    get searchParams() {
      this.#params ??= new URLSearchParams(this.search, (params) => this.#setSearch(String(params)));
      return this.#params;
    }
    set pathname(path) { this.#join(string(path).replace(/^\/?/, '/').replace(/[?#]/g, encodeURIComponent) + this.search + this.hash); }
    set search(search) { this.#params = undefined; this.#setSearch(string(search)); }
    set hash(hash) { this.#join(this.pathname + this.search + (hash ? '#' + string(hash).replace(/^#/, '') : '')); }
    #setSearch(search) {
      this.#join(this.pathname + (search ? '?' + search.replace(/^\?/, '').replaceAll('#', '%23') : '') + this.hash);
    }
    #join(reference) { this.#take(unwrap(host.joinUrl(this.href, reference), 'parse')); }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }

  // ---------------------------------------------------------------- HTTP

  class Node {
    constructor([tag, text, html, attributes]) {
      this.tag = tag;
      this.text = text;
      this.html = html;
      this.attributes = Object.assign(Object.create(null), Object.fromEntries(attributes));
    }
    attribute(name) { return this.attributes[name]; }
  }

  // What has been asked for since the queue of jobs last ran dry: it is sent side by side.
  let waiting = [];

  const ask = (spec) => new Promise((resolve, reject) => { waiting.push({ spec, resolve, reject }); });

  const flush = () => {
    if (waiting.length === 0) return false;
    const asked = waiting;
    waiting = [];
    host.sendAll(asked.map(({ spec }) => spec)).forEach(({ error, value }, index) => {
      const { resolve, reject } = asked[index];
      if (error) reject(new PluginError(error.code, error.detail));
      else resolve(new Response(value));
    });
    return true;
  };

  class Request {
    #spec;
    constructor(method, url) { this.#spec = [string(method), string(url), []]; }
    #step(...step) { this.#spec[2].push(step); return this; }
    header(name, value) { return this.#step('header', string(name), string(value)); }
    headers(fields) { for (const [name, value] of pairs(fields)) this.header(name, value); return this; }
    query(name, value) {
      if (typeof name === 'object') { for (const pair of pairs(name)) this.query(...pair); return this; }
      return this.#step('query', string(name), string(value));
    }
    bytes(data) { return this.#step('bodyBytes', bytes(data)); }
    text(body, contentType = 'text/plain; charset=utf-8') { return this.#step('bodyText', string(body), string(contentType)); }
    json(value) { return this.text(JSON.stringify(value), 'application/json'); }
    form(fields) { return this.#step('bodyForm', pairs(fields)); }
    timeout(ms) { return this.#step('timeoutMs', whole(ms, 'a timeout')); }
    maxBytes(count) { return this.#step('maxBytes', whole(count, 'a size')); }
    noRedirects() { return this.#step('noRedirects'); }
    noCookies() { return this.#step('noCookies'); }
    taskCookies() { return this.#step('taskCookies'); }
    account(slot) { return this.#step('account', string(slot)); }
    range(first, last) {
      return this.#step('range', whole(first, 'an offset'), last === undefined ? undefined : whole(last, 'an offset'));
    }
    cached(seconds) { return this.#step('cacheSeconds', whole(seconds, 'a time')); }
    captureJson(pointer, secret) { return this.#step('captureJson', string(pointer), string(secret)); }
    captureCookie(name, secret) { return this.#step('captureCookie', string(name), string(secret)); }
    captureForm(css, secret) { return this.#step('captureForm', string(css), string(secret)); }
    captureHeader(name, secret) { return this.#step('captureHeader', string(name), string(secret)); }
    secretHeader(name, template) { return this.#step('secretHeader', string(name), string(template)); }
    secretQuery(name, template) { return this.#step('secretQuery', string(name), string(template)); }
    secretJson(pointer, template) { return this.#step('secretJson', string(pointer), string(template)); }
    secretForm(name, template) { return this.#step('secretForm', string(name), string(template)); }
    sendAny() { return ask(this.#spec); }
    async send() { return (await this.sendAny()).checked(); }
  }

  class Response {
    #id;
    constructor({ id, status, url }) {
      this.#id = id;
      this.status = status;
      this.url = url;
    }
    get ok() { return this.status >= 200 && this.status < 300; }
    get headers() {
      return { get: (name) => this.header(name) ?? null, has: (name) => this.header(name) !== undefined };
    }
    checked() {
      const status = this.status;
      if (status >= 200 && status < 400) return this;
      switch (status) {
        case 401: throw new PluginError('loginRequired');
        case 403: throw new PluginError('forbidden', 'the site refuses access');
        case 404: throw new PluginError('notFound', 'the site does not have it');
        case 410: case 451: throw new PluginError('gone', 'the site no longer has it');
        case 429: {
          const seconds = Number(this.header('retry-after') ?? NaN);
          throw new PluginError('rateLimited', Number.isInteger(seconds) && seconds >= 0 ? seconds : undefined);
        }
        default: throw new PluginError('upstream', status);
      }
    }
    header(name) { return this.headerAll(name)[0]; }
    headerAll(name) { return host.responseHeaders(this.#id, string(name)); }
    text() { return unwrap(host.responseText(this.#id), 'parse'); }
    bytes() { return unwrap(host.responseBytes(this.#id), 'parse'); }
    json(pointer = '') {
      const raw = unwrap(host.responseJson(this.#id, string(pointer)), 'parse');
      if (raw === undefined) throw new PluginError('parse', `there is no ${pointer || 'JSON'}`);
      return JSON.parse(raw);
    }
    select(css) { return unwrap(host.responseSelect(this.#id, string(css)), 'parse').map((node) => new Node(node)); }
    regex(pattern, group = 0) {
      return unwrap(host.responseRegex(this.#id, pattern instanceof RegExp ? pattern.source : string(pattern), whole(group, 'a group')), 'parse');
    }
  }

  const http = {
    get: (url) => new Request('GET', url),
    head: (url) => new Request('HEAD', url),
    post: (url) => new Request('POST', url),
    request: (method, url) => new Request(method, url),
  };

  const fetch = (url, { method = 'GET', headers, body, redirect } = {}) => {
    const request = new Request(method, url);
    let contentType;
    for (const [name, value] of pairs(headers)) {
      if (name.toLowerCase() === 'content-type' && typeof body === 'string') contentType = value;
      else request.header(name, value);
    }
    if (body instanceof URLSearchParams) request.form(body);
    else if (typeof body === 'string') request.text(body, contentType);
    else if (body !== undefined && body !== null) request.bytes(body);
    if (redirect === 'manual') request.noRedirects();
    return request.sendAny();
  };

  // ---------------------------------------------------------------- results

  let spec;

  class Link {
    #steps = [];
    #url;
    constructor(url) { this.#url = string(url); }
    #step(...step) { this.#steps.push(step); return this; }
    mirror(url) { return this.#step('mirror', string(url)); }
    header(name, value) { return this.#step('header', string(name), string(value)); }
    secretHeader(name, template) { return this.#step('secretHeader', string(name), string(template)); }
    account(slot) { return this.#step('account', string(slot)); }
    ranges(isSupported) { return this.#step('ranges', Boolean(isSupported)); }
    singleUse() { return this.#step('singleUse'); }
    expires(time) { return this.#step('expiresMs', whole(time, 'a time')); }
    expiresIn(seconds) { return this.expires(host.nowMs() + Math.round(Number(seconds) * 1000)); }
    maxConnections(count) { return this.#step('maxConnections', whole(count, 'a count')); }
    audio(link) { return this.#step('audio', spec(link)); }
    manifest(kind) { return this.#step('manifest', string(kind)); }
    segment(url, part) {
      return this.#step('segment', string(url),
        part && [whole(part.offset, 'an offset'), whole(part.length, 'a length')]);
    }
    segmentKeyAt(url, iv) { return this.#step('segmentKeyAt', string(url), bytes(iv)); }
    segmentKey(key, iv) { return this.#step('segmentKey', bytes(key), bytes(iv)); }
    noSegmentKey() { return this.#step('noSegmentKey'); }
    static { spec = (link) => link instanceof Link ? [link.#url, link.#steps] : [string(link), []]; }
  }

  class Entry {
    #steps;
    constructor(steps) { this.#steps = steps; }
    #step(...step) { this.#steps.push(step); return this; }
    kind(kind) { return this.#step('kind', oneOf(kind, 'file', 'folder', 'videoStream', 'audioStream', 'subtitle', 'image')); }
    folder(path) { return this.#step('folder', string(path)); }
    size(count) { return this.#step('size', whole(count, 'a size')); }
    modified(time) { return this.#step('modifiedMs', whole(time, 'a time')); }
    checksum(algorithm, hex) { return this.#step('checksum', string(algorithm), string(hex)); }
    mediaType(type) { return this.#step('mediaType', string(type)); }
    thumbnail(url) { return this.#step('thumbnail', string(url)); }
    duration(ms) { return this.#step('durationMs', whole(ms, 'a duration')); }
    selected(isSelected) { return this.#step('selected', Boolean(isSelected)); }
    notSelected() { return this.selected(false); }
    link(link) { return this.#step('link', spec(link)); }
    variant(id, label, rank = 0) {
      const steps = [];
      this.#step('variant', string(id), string(label), Math.trunc(Number(rank)) || 0, steps);
      return new Entry(steps);
    }
  }

  class Listing {
    #steps;
    constructor(steps) { this.#steps = steps; }
    #step(...step) { this.#steps.push(step); return this; }
    title(text) { return this.#step('title', string(text)); }
    description(text) { return this.#step('description', string(text)); }
    cover(url) { return this.#step('cover', string(url)); }
    nextPage(token) { return this.#step('nextPage', string(token)); }
    askPassword(prompt) { return this.#step('askPassword', string(prompt)); }
    leftOut(why, name = '', count = 1) {
      return this.#step('leftOut', oneOf(why, 'unreadable', 'tooManyFiles', 'tooManyFolders', 'tooDeep'), string(name), whole(count, 'a count'));
    }
    add(id, name) {
      const steps = [];
      this.#step('add', string(id), string(name), steps);
      return new Entry(steps);
    }
  }

  class Item {
    #steps;
    constructor(steps) { this.#steps = steps; }
    #step(...step) { this.#steps.push(step); return this; }
    published(time) { return this.#step('publishedMs', whole(time, 'a time')); }
    summary(text) { return this.#step('summary', string(text)); }
    size(count) { return this.#step('size', whole(count, 'a size')); }
    enclosure(url, mediaType = '') { return this.#step('enclosure', string(url), string(mediaType)); }
    infohash(hex) { return this.#step('infohash', string(hex)); }
    resolveWithPlugin() { return this.#step('resolveWithPlugin'); }
  }

  class Feed {
    #steps;
    constructor(steps) { this.#steps = steps; }
    #step(...step) { this.#steps.push(step); return this; }
    title(text) { return this.#step('title', string(text)); }
    etag(text) { return this.#step('etag', string(text)); }
    ttl(seconds) { return this.#step('ttlSeconds', whole(seconds, 'a time')); }
    add(guid, title, link = '') {
      const steps = [];
      this.#step('add', string(guid), string(title), string(link), steps);
      return new Item(steps);
    }
  }

  // What a login shows. It is empty in each step.
  class Screen {
    #steps;
    constructor(steps) { this.#steps = steps; }
    #step(...step) { this.#steps.push(step); return this; }
    message(text) { return this.#step('message', string(text)); }
    qr(payload, seconds, hint = '') { return this.#step('qr', string(payload), whole(seconds, 'a time'), string(hint)); }
    field(key, label) { return this.#step('field', string(key), string(label), false); }
    secretField(key, label) { return this.#step('field', string(key), string(label), true); }
    openUrl(url, until) { return this.#step('openUrl', string(url), until === undefined ? undefined : string(until)); }
    pollAfter(ms) { return this.#step('pollAfterMs', whole(ms, 'a time')); }
    done(id, name = '') { return this.#step('done', string(id), string(name)); }
    expires(time) { return this.#step('expiresMs', whole(time, 'a time')); }
    expiresIn(seconds) { return this.expires(host.nowMs() + Math.round(Number(seconds) * 1000)); }
  }

  const isUrl = (value) => typeof value === 'string' || value instanceof URL || value instanceof Link;

  // A value as its author wrote it, for a message about it.
  const brief = (value) => {
    const text = typeof value === 'string' ? JSON.stringify(value) : shown(value);
    return text.length > 100 ? `${text.slice(0, 100)}…` : text;
  };

  // A script may answer with its files instead of adding them.
  const adopt = (out, answer) => {
    if (answer === undefined || answer === null) return;
    if (isUrl(answer)) answer = { url: answer };
    if (typeof answer !== 'object') throw new TypeError(`${brief(answer)} is neither files nor a URL`);
    if (answer.title !== undefined) out.title(answer.title);
    const files = Array.isArray(answer) ? answer : answer.files ?? [answer];
    if (!Array.isArray(files)) throw new TypeError(`${brief(files)} is no list of files`);
    for (const file of files) {
      if (!isUrl(file?.url)) throw new TypeError(`${brief(file)} is no file: { url, name, size, folder, headers }`);
      const url = spec(file.url)[0];
      const link = file.url instanceof Link ? file.url : new Link(url);
      for (const [name, value] of pairs(file.headers)) link.header(name, value);
      if (file.name === undefined && !URL.canParse(url)) throw new TypeError(`${brief(url)} is no URL`);
      const entry = out.add(file.id ?? url, file.name ?? new URL(url).segments.at(-1)).link(link);
      if (file.size !== undefined) entry.size(file.size);
      if (file.folder !== undefined) entry.folder(file.folder);
    }
  };

  // ---------------------------------------------------------------- the rest

  const text = {
    select: (html, css) => unwrap(host.select(string(html), string(css)), 'parse').map((node) => new Node(node)),
    captures: (pattern, input) => unwrap(host.captures(pattern instanceof RegExp ? pattern.source : string(pattern), string(input)), 'parse'),
    base64: (input) => unwrap(host.base64(string(input)), 'parse'),
    decryptAesCbc: (key, iv, data) => unwrap(host.decryptAesCbc(bytes(key), bytes(iv), bytes(data)), 'parse'),
    digest: (algorithm, data) => unwrap(host.digest(string(algorithm), typeof data === 'string' ? host.encode(string(data)) : bytes(data)), 'internal'),
    hex: (data) => Array.from(bytes(data), (byte) => byte.toString(16).padStart(2, '0')).join(''),
    encode: (input) => host.encode(string(input)),
    decode: (data) => host.decode(bytes(data)),
    filename: (name) => host.filename(string(name)),
  };

  const storage = {
    get(key) {
      const data = host.storageGet(string(key));
      return data === undefined ? undefined : JSON.parse(host.decode(data));
    },
    set(key, value, seconds) {
      const data = JSON.stringify(value);
      if (data === undefined) throw new TypeError('only what JSON can hold is kept');
      const lifetime = seconds === undefined ? undefined : whole(seconds, 'a lifetime');
      unwrap(host.storageSet(string(key), host.encode(data.toWellFormed()), lifetime), 'internal');
    },
    remove: (key) => host.storageRemove(string(key)),
    keys: (prefix = '') => host.storageKeys(string(prefix)),
  };

  const hash = (name) => oneOf(name, 'md5', 'sha1', 'sha256', 'sha512');
  const encoded = (name) => oneOf(name, 'hex', 'base64', 'base64url');

  // Secrets can be used and not read.
  const vault = {
    has: (name, account = '') => host.vaultHas(string(account), string(name)),
    forget: (name, account = '') => host.vaultForget(string(account), string(name)),
    digest: (template, algorithm, encoding = 'hex', account = '') =>
      unwrap(host.vaultDigest(string(account), string(template), hash(algorithm), encoded(encoding)), 'unsupported'),
    hmac: (key, data, algorithm, encoding = 'hex', account = '') =>
      unwrap(host.vaultHmac(string(account), string(key), string(data), hash(algorithm), encoded(encoding)), 'unsupported'),
  };

  const settings = {
    get(key, fallback) {
      const value = host.setting(string(key));
      if (value === undefined || value === '') return fallback;
      if (typeof fallback === 'boolean') return value === 'true';
      if (typeof fallback !== 'number') return value;
      if (Number.isNaN(Number(value))) throw new PluginError('invalidInput', `the setting ${key} cannot be ${value}`);
      return Number(value);
    },
  };

  const env = {
    now: () => host.nowMs(),
    monotonic: () => host.monotonicMs(),
    random: (count) => host.random(whole(count, 'a count')),
    get locale() { return host.locale(); },
    get hostVersion() { return host.hostVersion(); },
    hasFeature: (name) => host.hasFeature(string(name)),
    timeLeft: () => host.timeLeftMs(),
  };

  const shown = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : string(value);
    try { return JSON.stringify(value) ?? String(value); } catch { return String(value); }
  };
  const line = (level) => (...values) => host.log(level, string(values.map(shown).join(' ')));
  const log = {
    trace: line('trace'), debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error'),
    progress: (done, total, note = '') =>
      host.progress(whole(done, 'progress'), total === undefined ? undefined : whole(total, 'progress'), string(note)),
  };

  // A recorded call repeats: chance comes from the host, in pieces.
  let chance = { words: new Uint32Array(0), at: 0 };
  Math.random = () => {
    if (chance.at + 2 > chance.words.length) chance = { words: new Uint32Array(host.random(256).buffer), at: 0 };
    const [high, low] = [chance.words[chance.at++] >>> 5, chance.words[chance.at++] >>> 6];
    return (high * 0x4000000 + low) / 0x20000000000000;
  };

  class TextEncoder { encode(input = '') { return text.encode(input); } }
  class TextDecoder { decode(data = new Uint8Array(0)) { return text.decode(data); } }

  const console = { debug: log.debug, log: log.info, info: log.info, warn: log.warn, error: log.error };
  const globals = { PluginError, URL, URLSearchParams, Link, TextEncoder, TextDecoder,
    http, fetch, text, storage, settings, vault, env, log, console };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }

  // ---------------------------------------------------------------- calls

  const NAMES = ['resolve', 'more', 'linkFor', 'preview', 'feed'];
  // The functions of hooks, by the event that each is told of.
  const HOOKS = { start: 'onStart', metaProbed: 'onMetaProbed', done: 'onDone', error: 'onError' };
  let functions = {};

  // Takes the plugin's functions out of its module, or from where older scripts leave them; answers with their names.
  const take = (module) => {
    const takeInto = (taken, name) => {
      const found = module[name] ?? module.default?.[name] ?? globalThis[name];
      if (typeof found === 'function') taken[name] = found;
    };
    for (const name of NAMES) takeInto(functions, name);
    const hooks = {};
    for (const name of Object.values(HOOKS)) takeInto(hooks, name);
    if (Object.keys(hooks).length > 0) functions.hook = hooks;
    const logins = module.login ?? module.default?.login;
    if (typeof logins === 'object' && typeof logins?.start === 'function') functions.login = logins;
    return Object.keys(functions);
  };

  class Call {
    constructor(url, password) {
      this.url = new URL(url);
      this.password = password;
    }
  }

  const list = (name) => async (url, argument) => {
    const steps = [];
    const out = new Listing(steps);
    const call = new Call(url, name === 'resolve' ? argument : undefined);
    if (functions[name] === undefined) throw new PluginError('unsupported', `the plugin has no function ${name}`);
    const answer = await (name === 'more' ? functions.more(call, argument, out) : functions[name](call, out));
    // Neither the site nor the call is to blame: the host says what is wrong with the script.
    try { adopt(out, answer); } catch (error) { host.unusable(`${name}: ${string(error?.message ?? error)}`); }
    return steps;
  };

  const linkFor = async (url, entry, variant) => {
    if (functions.linkFor === undefined) throw new PluginError('unsupported', 'entries come with their links');
    const link = await functions.linkFor(new Call(url), entry, variant);
    if (!isUrl(link)) host.unusable(`linkFor: ${brief(link)} is neither a URL nor a Link`);
    return spec(link);
  };

  const feed = async (url, since, etag) => {
    const steps = [];
    await functions.feed({ url: new URL(url), since, etag }, new Feed(steps));
    return steps;
  };

  // Answers with the milliseconds after which `onError` wants another try.
  const hook = async (event, [taskId, url, fileName, errorKind, message], totalBytes, attempts) => {
    const call = { event, taskId, url: new URL(url), fileName, errorKind, message, totalBytes, attempts };
    const answer = await functions.hook?.[HOOKS[event]]?.(call);
    if (event !== 'error' || answer === undefined || answer === null) return undefined;
    const wait = answer.delayMs;
    if (!(Number.isFinite(wait) && wait >= 0)) host.unusable(`onError: ${brief(answer)} is not like { delayMs: 5000 }`);
    return Math.min(Math.round(wait), Number.MAX_SAFE_INTEGER);
  };

  // A step of a login. Whatever the script remembers between the steps of one login, it keeps in its own variables.
  const login = (name) => async (call, ...rest) => {
    const steps = [];
    const step = functions.login?.[name];
    if (typeof step !== 'function') throw new PluginError('unsupported', `the login has no function ${name}`);
    const answer = await step.call(functions.login, call, ...rest, new Screen(steps));
    return { steps, answer };
  };
  const loginStep = (name) => async (slot, mode, values) => {
    const call = { slot, mode };
    return (await (name === 'answer' ? login(name)(call, Object.fromEntries(values)) : login(name)(call))).steps;
  };
  const loginCheck = async (slot) => Boolean((await login('check')({ slot })).answer);
  const loginRefresh = async (slot) => (await login('refresh')({ slot })).steps;
  const loginLogout = async (slot) => { if (functions.login?.logout) await login('logout')({ slot }); };

  // Rejections that nobody has handled yet.
  const unhandled = new Map();
  const rejected = (promise, reason, isHandled) => {
    if (isHandled) unhandled.delete(promise);
    else unhandled.set(promise, reason);
  };
  // The first of them. The next call of a login begins without any.
  const takeUnhandled = () => {
    const first = [...unhandled.values()].slice(0, 1);
    unhandled.clear();
    return first;
  };

  return { string, take, flush, describe, rejected, takeUnhandled,
    resolve: list('resolve'), more: list('more'), preview: list('preview'), linkFor, feed, hook,
    loginStart: loginStep('start'), loginPoll: loginStep('poll'), loginAnswer: loginStep('answer'),
    loginCheck, loginRefresh, loginLogout };
})
