// Which downloads of the browser are taken over. Pure: the same facts give the same answer.

export const DEFAULTS = {
  enabled: true,
  service: 'http://127.0.0.1:17800',
  key: '',
  // Smaller files are done before a question about them is answered. A file of unknown size is taken.
  minBytes: 1024 * 1024,
  // Endings that are taken whatever their size, and endings that never are.
  always: 'torrent metalink meta4',
  never: 'crx xpi',
  // Host names (subdomains included), one in a line; "example.com" never, "+example.com" always.
  sites: '',
  // Hosts whose cookies the user allowed to be sent along.
  cookieSites: [],
};

/** How long a click with the bypass key keeps the next download in the browser. */
export const BYPASS_MS = 5000;

const words = (text) => text.toLowerCase().split(/[\s,]+/).filter(Boolean);

export const hostOf = (url) => {
  try {
    return new URL(url).hostname;
  } catch {
    return '';
  }
};

const originOf = (url) => {
  try {
    return new URL(url).origin;
  } catch {
    return '';
  }
};

/** Whether a host is a site or one of its subdomains. */
export const isOf = (host, site) => host === site || host.endsWith(`.${site}`);

/** The site rule that fits best, which is the longest: true for always, false for never, undefined for none. */
export function siteRule(host, sites) {
  const rules = words(sites).map((line) => ({ take: line.startsWith('+'), site: line.replace(/^\+/, '') }));
  const fitting = rules.filter(({ site }) => isOf(host, site)).sort((a, b) => b.site.length - a.site.length);
  return fitting[0]?.take;
}

/** Loopback by all its names is one host, so that a page of the service is known by any of them. */
const sameService = (url, service) => {
  const plain = (text) => originOf(text).replace(/^(https?:\/\/)(localhost|\[::1\])(?=[:/]|$)/, '$1127.0.0.1');
  return plain(url) !== '' && plain(url) === plain(service);
};

/**
 * Whether a download is taken over, and why. `download` has what the browser says of it: url, referrer, filename, bytes
 * (-1 for unknown), isPrivate, byExtension.
 */
export function decide(download, settings, bypassedAt = 0, now = Date.now()) {
  const leave = (why) => ({ take: false, why });
  const take = (why) => ({ take: true, why });
  if (!settings.enabled) return leave('switched off');
  if (now - bypassedAt < BYPASS_MS) return leave('bypass key');
  // What only the browser has: data, blobs, files.
  if (!/^(https?|ftp):/i.test(download.url)) return leave('not a link that others can follow');
  if (sameService(download.url, settings.service) || sameService(download.referrer ?? '', settings.service)) {
    return leave('a page of Svc');
  }
  if (download.byExtension) return leave('of another extension');
  if (download.isPrivate) return leave('a private window');
  const path = download.filename || new URL(download.url).pathname;
  const ending = /\.([a-z0-9]{1,10})$/i.exec(path)?.[1].toLowerCase() ?? '';
  const rule = siteRule(hostOf(download.url), settings.sites);
  if (rule === false) return leave('a site that is never taken');
  if (words(settings.never).includes(ending)) return leave('a type that is never taken');
  if (rule === true) return take('a site that is always taken');
  if (words(settings.always).includes(ending)) return take('a type that is always taken');
  if (download.bytes >= 0 && download.bytes < settings.minBytes) return leave('small');
  return take('size');
}

/** A `Cookie` header of what the browser would send. */
export const cookieHeader = (cookies) => cookies.map(({ name, value }) => `${name}=${value}`).join('; ');

/** Links without repetition, that others can follow, filtered by a word, or by an expression between slashes. */
export function filterLinks(links, filter) {
  const expression = /^\/(.+)\/$/.exec(filter);
  let fits;
  try {
    const pattern = expression && new RegExp(expression[1], 'i');
    fits = ({ url, text }) => (pattern ? pattern.test(url) : words(filter).every((word) => `${url} ${text}`.toLowerCase().includes(word)));
  } catch {
    fits = () => false;
  }
  const seen = new Set();
  return links.filter(({ url }) => /^(https?|ftp|magnet):/i.test(url) && !seen.has(url) && seen.add(url)).filter(fits);
}
