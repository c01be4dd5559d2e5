// What a person pastes: links, magnet links and curl command lines, one or many.
import { hash53, sameLink, siteOf } from '../rpc/row';

export interface Pasted {
  kind: 'link' | 'magnet' | 'curl' | 'unknown';
  /** As it was pasted. */
  text: string;
  url: string;
  /** The name that the link suggests; empty: none. */
  name: string;
  host: string;
  /** Of the curl line. */
  headers: Record<string, string>;
  cookies: string;
  referrer: string;
  userAgent: string;
  user: string;
  password: string;
  proxy: string;
  method: string;
  body: string;
  isInsecure: boolean;
  /** Options of the curl line that have no meaning here. */
  ignored: string[];
  /** To find the same link among the tasks. */
  link: number;
}

const schemes = /^(https?|ftps?|sftp|magnet|thunder|ed2k):/i;

function empty(text: string): Pasted {
  return {
    kind: 'unknown', text, url: '', name: '', host: '', headers: {}, cookies: '', referrer: '', userAgent: '', user: '', password: '',
    proxy: '', method: '', body: '', isInsecure: false, ignored: [], link: 0,
  };
}

function nameOf(url: string): string {
  try {
    const last = new URL(url).pathname.split('/').pop() ?? '';
    return decodeURIComponent(last);
  } catch {
    return '';
  }
}

function parameter(magnet: string, name: string): string {
  return new URLSearchParams(magnet.slice(magnet.indexOf('?') + 1)).get(name) ?? '';
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The info hash of a magnet link as 40 hexadecimal digits; empty: none. */
export function infoHash(magnet: string): string {
  const found = /[?&]xt=urn:btih:([0-9a-z]+)/i.exec(magnet)?.[1] ?? '';
  if (/^[0-9a-f]{40}$/i.test(found)) return found.toLowerCase();
  if (!/^[a-z2-7]{32}$/i.test(found)) return '';
  let bits = '';
  for (const letter of found.toUpperCase()) bits += base32.indexOf(letter).toString(2).padStart(5, '0');
  let hex = '';
  for (let at = 0; at < bits.length; at += 4) hex += parseInt(bits.slice(at, at + 4), 2).toString(16);
  return hex;
}

function link(text: string): Pasted {
  const one = empty(text);
  if (/^magnet:/i.test(text)) {
    const hash = infoHash(text);
    const isTorrent = hash !== '' || /[?&]xt=urn:btmh:/i.test(text);
    return { ...one, kind: isTorrent ? 'magnet' : 'unknown', url: text, name: parameter(text, 'dn'), link: hash53(`btih:${hash}`) };
  }
  let url = text;
  if (!schemes.test(url)) {
    // `example.org/file.zip`: a host with a dot and a path.
    if (!/^[\w-]+(\.[\w-]+)+(:\d+)?\/\S/.test(url)) return one;
    url = `https://${url}`;
  }
  if (/^(https?|ftps?|sftp):/i.test(url) && siteOf(url) === '') return one;
  return { ...one, kind: 'link', url, name: nameOf(url), host: siteOf(url), link: hash53(sameLink(url)) };
}

/** Splits a command line as a POSIX shell does: quotes, `$'…'`, backslashes. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | null = null;
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!;
    if (/\s/.test(char)) {
      if (word !== null) found.push(word);
      word = null;
    } else if (char === "'" || (char === '$' && line[at + 1] === "'")) {
      const isEscaped = char === '$';
      if (isEscaped) at++;
      word ??= '';
      for (at++; at < line.length && line[at] !== "'"; at++) {
        if (isEscaped && line[at] === '\\') {
          const next = line[++at] ?? '';
          word += ({ n: '\n', r: '\r', t: '\t' } as Record<string, string>)[next] ?? next;
        } else {
          word += line[at];
        }
      }
    } else if (char === '"') {
      word ??= '';
      for (at++; at < line.length && line[at] !== '"'; at++) {
        if (line[at] === '\\' && /["\\$`\n]/.test(line[at + 1] ?? '')) at++;
        word += line[at];
      }
    } else if (char === '\\') {
      at++;
      if (line[at] === '\n') continue;
      word = (word ?? '') + (line[at] ?? '');
    } else {
      word = (word ?? '') + char;
    }
  }
  if (word !== null) found.push(word);
  return found;
}

const short: Record<string, string> = {
  H: 'header', b: 'cookie', A: 'user-agent', e: 'referer', u: 'user', X: 'request', d: 'data', x: 'proxy', k: 'insecure', o: 'output',
  L: 'location', O: 'remote-name', s: 'silent', S: 'show-error', f: 'fail', v: 'verbose', J: 'remote-header-name', C: 'continue-at',
  m: 'max-time', '#': 'progress-bar', F: 'form', T: 'upload-file', i: 'include', G: 'get', I: 'head',
};
const valued = new Set([
  'header', 'cookie', 'user-agent', 'referer', 'user', 'request', 'data', 'data-raw', 'data-binary', 'data-ascii', 'data-urlencode', 'proxy',
  'output', 'continue-at', 'max-time', 'connect-timeout', 'retry', 'limit-rate', 'url', 'form', 'upload-file', 'output-dir', 'resolve', 'cacert',
  'cert', 'key', 'max-redirs', 'retry-delay',
]);
const harmless = new Set([
  'location', 'remote-name', 'silent', 'show-error', 'fail', 'verbose', 'remote-header-name', 'progress-bar', 'compressed', 'globoff',
  'http1.1', 'http2', 'continue-at', 'fail-with-body',
]);

/** A curl command line, as browsers copy it. */
export function curl(line: string): Pasted {
  const one = empty(line);
  const rest = words(line).slice(1);
  const take = (name: string, value: string): void => {
    switch (name) {
      case 'url':
        one.url ||= value;
        break;
      case 'header': {
        const colon = value.indexOf(':');
        if (colon <= 0) break;
        const [header, text] = [value.slice(0, colon).trim(), value.slice(colon + 1).trim()];
        if (/^cookie$/i.test(header)) one.cookies = text;
        else if (/^referer$/i.test(header)) one.referrer = text;
        else if (/^user-agent$/i.test(header)) one.userAgent = text;
        // The service negotiates these itself.
        else if (!/^(accept-encoding|connection|host|content-length|range|if-range|te)$/i.test(header)) one.headers[header] = text;
        break;
      }
      case 'cookie':
        if (value.includes('=')) one.cookies = value;
        else one.ignored.push('--cookie');
        break;
      case 'user-agent':
        one.userAgent = value;
        break;
      case 'referer':
        one.referrer = value.replace(/;auto$/, '');
        break;
      case 'user': {
        const colon = value.indexOf(':');
        one.user = colon < 0 ? value : value.slice(0, colon);
        one.password = colon < 0 ? '' : value.slice(colon + 1);
        break;
      }
      case 'request':
        one.method = value.toUpperCase();
        break;
      case 'data':
      case 'data-raw':
      case 'data-binary':
      case 'data-ascii':
        if (value.startsWith('@') && name !== 'data-raw') one.ignored.push(`--${name} ${value}`);
        else one.body = one.body === '' ? value : `${one.body}&${value}`;
        break;
      case 'proxy':
        one.proxy = value.includes('://') ? value : `http://${value}`;
        break;
      case 'output':
        one.name = value.split('/').pop() ?? '';
        break;
      case 'insecure':
        one.isInsecure = true;
        break;
      default:
        if (!harmless.has(name)) one.ignored.push(`--${name}`);
    }
  };
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at]!;
    if (word.startsWith('--')) {
      const [name = '', inline] = word.slice(2).split(/=(.*)/s, 2);
      if (valued.has(name)) take(name, inline ?? rest[++at] ?? '');
      else take(name, '');
    } else if (word.startsWith('-') && word.length > 1) {
      for (let letter = 1; letter < word.length; letter++) {
        const name = short[word[letter]!] ?? word[letter]!;
        if (!valued.has(name)) {
          take(name, '');
          continue;
        }
        take(name, letter + 1 < word.length ? word.slice(letter + 1) : (rest[++at] ?? ''));
        break;
      }
    } else {
      take('url', word);
    }
  }
  const target = link(one.url);
  if (target.kind !== 'link') return one;
  if (one.method === '' && one.body !== '') one.method = 'POST';
  return { ...one, kind: 'curl', url: target.url, host: target.host, name: one.name || target.name, link: target.link };
}

export const MAX_LINES = 5000;

/** Everything in a pasted text, once each. */
export function paste(text: string): Pasted[] {
  const found: Pasted[] = [];
  const seen = new Set<string>();
  const add = (one: Pasted): void => {
    const same = `${one.kind} ${one.url || one.text} ${one.method} ${one.body}`;
    if (seen.has(same) || found.length >= MAX_LINES) return;
    seen.add(same);
    found.push(one);
  };
  // A backslash (or `^` as Windows writes it) at the end continues the command line.
  const lines = text.replace(/\r\n?/g, '\n').replace(/[\\^]\n\s*/g, ' ').split('\n');
  for (let at = 0; at < lines.length; at++) {
    let line = lines[at]!.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (/^curl(\.exe)?\s/i.test(line)) {
      // A quote that is still open holds the next line too.
      while (at + 1 < lines.length && isOpen(line)) line += `\n${lines[++at]}`;
      add(curl(line));
      continue;
    }
    // Text around a link: `see https://a.example/b, and …`.
    const inside = schemes.test(line) ? null : line.match(/(?:https?|ftps?|sftp):\/\/[^\s<>"'）】]+|magnet:\?[^\s<>"']+/gi);
    if (inside) {
      for (const url of inside) add(link(url.replace(/[.,;:!?)\]]+$/, '')));
      continue;
    }
    // One link may have spaces in it; several on a line are separated by them.
    for (const part of line.split(/\s+(?=(?:https?|ftps?|sftp|magnet|thunder|ed2k):)/i)) add(link(part.trim()));
  }
  return found;
}

function isOpen(line: string): boolean {
  let quote = '';
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!;
    if (quote === '') {
      if (char === '\\') at++;
      else if (char === "'" || char === '"') quote = char;
    } else if (char === quote) {
      quote = '';
    } else if (char === '\\' && quote === '"') {
      at++;
    }
  }
  return quote !== '';
}
