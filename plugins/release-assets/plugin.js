/// <reference path="../../plugin-sdk/js/svc-plugin.d.ts" />
// @ts-check
// Lists the files of releases. Every forge tells of them as JSON; what differs is where, and what it calls things.

/** Releases of one page of a project. */
const PAGE = 30;

/**
 * @typedef {object} Release
 * @property {string} tag
 * @property {string} [name]
 * @property {boolean} [isPreview] drafts and what is not yet meant for everybody
 * @property {{ id: string, name: string, url: string, size?: number, mediaType?: string, sha256?: string, time?: string }[]} files
 * @property {{ name: string, url: string }[]} sources
 */

/**
 * @typedef {object} Forge
 * @property {string} project what the project is called
 * @property {string} api the URL of its releases
 * @property {string} latest the end of the URL of the newest one
 * @property {string} one what stands before the tag in the URL of one
 * @property {string} perPage the parameter for the size of a page
 * @property {(page: svc.Response, next: number) => boolean} hasMore whether there is a page of this number
 * @property {(release: any) => Release} read
 */

/** @type {svc.Resolve} */
export async function resolve(call, out) {
  const { forge, wanted } = recognise(call.url);
  if (wanted === undefined) return list(forge, 1, out);
  const path = wanted.latest ? forge.latest : forge.one + encodeURIComponent(wanted.tag);
  const release = read(forge, (await ask(`${forge.api}/${path}`)).json());
  out.title(`${forge.project} ${release.tag}`);
  if (release.name && release.name !== release.tag) out.description(release.name);
  add(out, forge, release, { folder: '', isSelected: true });
}

export const preview = resolve;

/** @type {svc.More} */
export function more(call, token, out) {
  return list(recognise(call.url).forge, Number(token), out);
}

/**
 * All releases of a page, each in its folder. Only the newest that is meant for everybody is selected.
 * @param {Forge} forge
 * @param {number} page
 * @param {svc.Listing} out
 */
async function list(forge, page, out) {
  const response = await ask(forge.api, { [forge.perPage]: PAGE, page });
  const releases = response.json();
  if (!Array.isArray(releases)) throw new PluginError('parse', 'the releases are no list');
  if (page === 1) out.title(`${forge.project} releases`);
  let isNewest = page === 1;
  for (const release of releases.map((release) => read(forge, release))) {
    const isSelected = isNewest && !release.isPreview;
    if (isSelected) isNewest = false;
    add(out, forge, release, { folder: release.tag, isSelected });
  }
  if (forge.hasMore(response, page + 1)) out.nextPage(String(page + 1));
}

/**
 * @param {svc.Listing} out
 * @param {Forge} forge
 * @param {Release} release
 * @param {{ folder: string, isSelected: boolean }} place
 */
function add(out, forge, release, { folder, isSelected }) {
  for (const file of release.files) {
    const entry = out.add(`${release.tag}/${file.id}`, file.name).folder(folder).selected(isSelected);
    entry.link(new Link(file.url));
    if (file.size !== undefined) entry.size(file.size);
    if (file.mediaType) entry.mediaType(file.mediaType);
    if (file.sha256) entry.checksum('sha256', file.sha256);
    const time = Date.parse(file.time ?? '');
    if (time >= 0) entry.modified(time);
  }
  if (!settings.get('sources', true)) return;
  for (const source of release.sources) {
    out.add(`${release.tag}/source/${source.name}`, source.name).folder(folder).notSelected().link(new Link(source.url));
  }
}

/**
 * @param {string} url
 * @param {Record<string, number>} [query]
 */
async function ask(url, query = {}) {
  const request = http.get(url).header('Accept', 'application/json').query(query);
  if (url.startsWith('https://api.github.com/') && vault.has('githubToken')) {
    request.secretHeader('Authorization', 'Bearer {githubToken}');
  }
  const response = await request.sendAny();
  const pause = pauseOf(response);
  if (pause !== undefined) throw new PluginError('rateLimited', pause);
  // What is no forge answers with a page, whatever its status.
  if (response.status < 500 && !/json/.test(response.header('content-type') ?? '')) throw new PluginError('notMatched');
  return response.checked();
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

/**
 * Which forge the URL belongs to, and which release is wanted; all, if none is said.
 * @param {URL} url
 * @returns {{ forge: Forge, wanted?: { latest: boolean, tag: string } }}
 */
function recognise(url) {
  const parts = url.segments.filter((part) => part !== '');
  const dash = parts.indexOf('-');
  if (dash >= 2 && parts[dash + 1] === 'releases') {
    const [kind, ...rest] = parts.slice(dash + 2);
    const isLatest = kind === 'permalink' && rest[0] === 'latest';
    if (kind === 'permalink' && !isLatest) throw new PluginError('notMatched');
    const tag = [kind, ...rest].join('/');
    return { forge: gitLab(url, parts.slice(0, dash)), wanted: kind === undefined ? undefined : { latest: isLatest, tag } };
  }
  const [owner, project, word, kind, ...rest] = parts;
  if (word !== 'releases' || (kind === 'tag') !== rest.length > 0 || ![undefined, 'latest', 'tag'].includes(kind)) {
    throw new PluginError('notMatched');
  }
  const forge = url.host === 'github.com' ? gitHub(owner, project) : gitea(url, owner, project);
  return { forge, wanted: kind === undefined ? undefined : { latest: kind === 'latest', tag: rest.join('/') } };
}

/**
 * @param {string[]} names
 */
const path = (...names) => names.map(encodeURIComponent).join('/');

/** @param {svc.Response} response */
const hasNextLink = (response) => /;\s*rel="?next"?/.test(response.header('link') ?? '');

/**
 * @param {string} owner
 * @param {string} project
 * @returns {Forge}
 */
function gitHub(owner, project) {
  const pages = `https://github.com/${path(owner, project)}`;
  return {
    project,
    api: `https://api.github.com/repos/${path(owner, project)}/releases`,
    latest: 'latest',
    one: 'tags/',
    perPage: 'per_page',
    hasMore: hasNextLink,
    read: (release) => gitHubLike(release, project, `${pages}/archive/refs/tags`),
  };
}

/**
 * @param {URL} url
 * @param {string} owner
 * @param {string} project
 * @returns {Forge}
 */
function gitea(url, owner, project) {
  return {
    project,
    api: `${url.origin}/api/v1/repos/${path(owner, project)}/releases`,
    latest: 'latest',
    one: 'tags/',
    perPage: 'limit',
    hasMore: hasNextLink,
    read: (release) => gitHubLike(release, project, `${url.origin}/${path(owner, project)}/archive`),
  };
}

/**
 * Gitea tells of a release in GitHub's words.
 * @param {any} release
 * @param {string} project
 * @param {string} archives
 * @returns {Release}
 */
function gitHubLike(release, project, archives) {
  const tag = release.tag_name;
  return {
    tag,
    name: release.name,
    isPreview: release.draft || release.prerelease,
    files: release.assets.map((/** @type {any} */ asset) => ({
      id: String(asset.id),
      name: asset.name,
      url: asset.browser_download_url,
      size: asset.size,
      mediaType: asset.content_type,
      sha256: /^sha256:([0-9a-f]{64})$/.exec(asset.digest ?? '')?.[1],
      time: asset.updated_at ?? asset.created_at,
    })),
    sources: ['zip', 'tar.gz'].map((format) => ({
      name: `${project}-${tag}.${format}`,
      url: `${archives}/${tag.split('/').map(encodeURIComponent).join('/')}.${format}`,
    })),
  };
}

/**
 * @param {URL} url
 * @param {string[]} names the groups and the project
 * @returns {Forge}
 */
function gitLab(url, names) {
  const project = names[names.length - 1];
  return {
    project,
    api: `${url.origin}/api/v4/projects/${encodeURIComponent(names.join('/'))}/releases`,
    latest: 'permalink/latest',
    one: '',
    perPage: 'per_page',
    hasMore: (response, next) => response.header('x-next-page') === String(next),
    read: (release) => ({
      tag: release.tag_name,
      name: release.name,
      isPreview: release.upcoming_release,
      files: release.assets.links.map((/** @type {any} */ link) => {
        const target = link.direct_asset_url ?? link.url;
        const isName = /^\S+\.\w+$/.test(link.name);
        return {
          id: String(link.id),
          name: isName ? link.name : new URL(target).segments.pop() || link.name,
          url: target,
          time: release.released_at,
        };
      }),
      sources: release.assets.sources.map((/** @type {any} */ source) => ({
        name: `${project}-${release.tag_name}.${source.format}`,
        url: source.url,
      })),
    }),
  };
}
