/// <reference path="../../plugin-sdk/js/svc-plugin.d.ts" />
// @ts-check
// The newest releases of a repository. Every forge tells of them as JSON; what differs is where, and what it calls things.

/** Releases that are asked for. More than this many between two calls are not seen. */
const RELEASES = 30;

/**
 * @typedef {object} Release
 * @property {string} tag
 * @property {string} page
 * @property {boolean} isPreview
 * @property {string} time
 * @property {{ name: string, url: string, size?: number, mediaType?: string }[]} files
 */

/**
 * @typedef {object} Forge
 * @property {string} project what the project is called
 * @property {string} api the URL of its releases
 * @property {string} perPage the parameter for the number of releases
 * @property {(release: any) => Release} read
 */

/** @type {svc.ReadFeed} */
export async function feed(call, out) {
  const forge = recognise(call.url);
  const pattern = settings.get('files', '');
  const response = await ask(forge, call.etag);
  if (response.status === 304) {
    out.etag(call.etag ?? '');
    return;
  }
  const releases = response.checked().json();
  if (!Array.isArray(releases)) throw new PluginError('parse', 'the releases are no list');
  out.title(`${forge.project} releases`);
  const etag = response.header('etag');
  if (etag !== undefined && etag.length <= 1024) out.etag(etag);
  for (const release of releases.map((release) => read(forge, release))) {
    if (release.isPreview && !settings.get('previews', false)) continue;
    if (pattern === '') dated(out.add(release.page, `${forge.project} ${release.tag}`, release.page), release).resolveWithPlugin();
    else files(out, forge, release, pattern);
  }
}

/**
 * The files of a release that are wanted, each an item.
 * @param {svc.Feed} out
 * @param {Forge} forge
 * @param {Release} release
 * @param {string} pattern
 */
function files(out, forge, release, pattern) {
  for (const file of release.files) {
    // The host's expressions take linear time, whatever the user writes.
    if (text.captures(pattern, file.name).length === 0) continue;
    const item = dated(out.add(file.url, `${forge.project} ${release.tag} ${file.name}`, release.page), release);
    item.enclosure(file.url, file.mediaType ?? '');
    if (file.size !== undefined) item.size(file.size);
  }
}

/**
 * @param {svc.Item} item
 * @param {Release} release
 */
function dated(item, release) {
  const time = Date.parse(release.time ?? '');
  return time >= 0 ? item.published(time) : item;
}

/**
 * @param {Forge} forge
 * @param {string} [etag]
 */
async function ask(forge, etag) {
  const request = http.get(forge.api).header('Accept', 'application/json').query(forge.perPage, RELEASES);
  if (etag) request.header('If-None-Match', etag);
  if (forge.api.startsWith('https://api.github.com/') && vault.has('githubToken')) {
    request.secretHeader('Authorization', 'Bearer {githubToken}');
  }
  const response = await request.sendAny();
  const pause = pauseOf(response);
  if (pause !== undefined) throw new PluginError('rateLimited', pause);
  if (response.status < 300 && !/json/.test(response.header('content-type') ?? '')) {
    throw new PluginError('parse', 'the site is no forge that is known: it answers with a page');
  }
  return response;
}

/**
 * How long a forge that has had enough wants to be left alone, in seconds; `undefined` if it has not.
 * @param {svc.Response} response
 */
function pauseOf(response) {
  const header = (/** @type {string} */ name) => {
    const text = response.header(name);
    return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
  };
  const left = header('x-ratelimit-remaining') ?? header('ratelimit-remaining');
  if (response.status !== 429 && (response.status !== 403 || left !== 0)) return undefined;
  const reset = header('x-ratelimit-reset') ?? header('ratelimit-reset');
  const until = reset === undefined ? 60 : Math.ceil(reset - env.now() / 1000);
  return header('retry-after') ?? Math.max(until, 1);
}

/**
 * A release, or that the forge has changed.
 * @param {Forge} forge
 * @param {any} release
 */
function read(forge, release) {
  try {
    return forge.read(release);
  } catch (error) {
    if (error instanceof TypeError) throw new PluginError('parse', `a release has another shape: ${error.message}`);
    throw error;
  }
}

/** @param {string[]} names */
const path = (...names) => names.map(encodeURIComponent).join('/');

/**
 * Which forge the URL of a repository belongs to.
 * @param {URL} url
 * @returns {Forge}
 */
function recognise(url) {
  const parts = url.segments.filter((part) => part !== '');
  const dash = parts.indexOf('-');
  if (dash >= 2) return gitLab(url, parts.slice(0, dash));
  if (url.host === 'gitlab.com' && parts.length >= 2) return gitLab(url, parts);
  const [owner, project, word] = parts;
  if (parts.length < 2 || parts.length > 3 || ![undefined, 'releases'].includes(word)) {
    throw new PluginError('invalidInput', 'give the URL of a repository: https://host/owner/project');
  }
  const api = url.host === 'github.com' ? 'https://api.github.com' : `${url.origin}/api/v1`;
  return {
    project,
    api: `${api}/repos/${path(owner, project)}/releases`,
    perPage: url.host === 'github.com' ? 'per_page' : 'limit',
    read: gitHubLike,
  };
}

/**
 * Gitea tells of a release in GitHub's words.
 * @param {any} release
 * @returns {Release}
 */
function gitHubLike(release) {
  return {
    tag: release.tag_name,
    page: release.html_url,
    isPreview: Boolean(release.draft || release.prerelease),
    time: release.published_at ?? release.created_at,
    files: release.assets.map((/** @type {any} */ asset) => ({
      name: asset.name,
      url: asset.browser_download_url,
      size: asset.size,
      mediaType: asset.content_type,
    })),
  };
}

/**
 * @param {URL} url
 * @param {string[]} names the groups and the project
 * @returns {Forge}
 */
function gitLab(url, names) {
  const pages = `${url.origin}/${path(...names)}/-/releases`;
  return {
    project: names[names.length - 1],
    api: `${url.origin}/api/v4/projects/${encodeURIComponent(names.join('/'))}/releases`,
    perPage: 'per_page',
    read: (release) => ({
      tag: release.tag_name,
      page: release._links?.self ?? `${pages}/${encodeURIComponent(release.tag_name)}`,
      isPreview: Boolean(release.upcoming_release),
      time: release.released_at,
      files: release.assets.links.map((/** @type {any} */ link) => ({ name: link.name, url: link.direct_asset_url ?? link.url })),
    }),
  };
}
