// Takes downloads over, and has the entries of the context menu.

import { decide, filterLinks } from './rules.js';
import { handOver, handOverAll, settings } from './service.js';

let bypassedAt = 0;

/** Shows for a moment how it went. */
function badge(text, colour, title = 'Svc') {
  chrome.action.setBadgeText({ text });
  chrome.action.setBadgeBackgroundColor({ color: colour });
  chrome.action.setTitle({ title });
  setTimeout(() => chrome.action.setBadgeText({ text: '' }), 5000);
}

const facts = (item) => ({
  url: item.url,
  referrer: item.referrer,
  filename: (item.filename ?? '').split(/[\\/]/).pop(),
  bytes: item.totalBytes ?? item.fileSize ?? -1,
  mime: item.mime,
  isPrivate: item.incognito,
  byExtension: Boolean(item.byExtensionId),
});

/** Hands a download over and removes it from the browser. Whatever fails, the browser goes on with it. */
async function takeOver(item) {
  const download = facts(item);
  const { take } = decide(download, await settings(), bypassedAt);
  if (!take) return false;
  try {
    await handOver(download);
  } catch (error) {
    badge('!', '#b3261e', `Svc: ${error.message}; the browser downloads it`);
    return false;
  }
  await chrome.downloads.cancel(item.id).catch(() => {});
  await chrome.downloads.erase({ id: item.id }).catch(() => {});
  badge('✓', '#0f5c4d');
  return true;
}

/** Firefox announces a download before it knows its size, and tells of no change of the size. */
async function withSize(item) {
  let now = item;
  for (let look = 0; look < 20 && now.state === 'in_progress' && !(now.totalBytes >= 0); look += 1) {
    await new Promise((next) => setTimeout(next, 50));
    const found = await chrome.downloads.search({ id: item.id });
    now = found[0] ?? { ...item, state: 'interrupted' };
  }
  return now;
}

if (chrome.downloads.onDeterminingFilename) {
  // Chromium holds the download until it is told its name.
  chrome.downloads.onDeterminingFilename.addListener((item, suggest) => {
    takeOver(item).then((taken) => taken || suggest(), () => suggest());
    return true;
  });
} else {
  chrome.downloads.onCreated.addListener(async (item) => {
    // Decided first: a download that the browser keeps is never paused, because not every server can continue one.
    item = await withSize(item);
    if (item.state !== 'in_progress' || !decide(facts(item), await settings(), bypassedAt).take) return;
    // A paused download is neither finished nor gone while the service is asked.
    const isHeld = await chrome.downloads.pause(item.id).then(() => true, () => false);
    if ((await takeOver(item)) || !isHeld) return;
    try {
      await chrome.downloads.resume(item.id);
    } catch {
      const headers = item.referrer ? [{ name: 'Referer', value: item.referrer }] : [];
      await chrome.downloads.download({ url: item.url, headers });
      await chrome.downloads.erase({ id: item.id });
    }
  });
}

chrome.runtime.onMessage.addListener((message) => {
  if (message === 'bypass') bypassedAt = Date.now();
});

chrome.runtime.onInstalled.addListener(async () => {
  await chrome.contextMenus.removeAll();
  chrome.contextMenus.create({ id: 'link', title: 'Download with Svc', contexts: ['link', 'image', 'video', 'audio'] });
  chrome.contextMenus.create({ id: 'links', title: 'Download links of this page with Svc …', contexts: ['page', 'selection'] });
});

chrome.contextMenus.onClicked.addListener(async (info, tab) => {
  if (info.menuItemId === 'links') return showLinks(tab);
  const url = info.linkUrl ?? info.srcUrl;
  try {
    await handOver({ url, referrer: info.pageUrl });
    badge('✓', '#0f5c4d');
  } catch (error) {
    badge('!', '#b3261e', `Svc: ${error.message}`);
  }
});

/** Collects the links of a page, which the click gave leave to, and shows them for a choice. */
async function showLinks(tab) {
  const [{ result }] = await chrome.scripting.executeScript({
    target: { tabId: tab.id },
    func: () => {
      const page = (url) => url.split('#')[0];
      const links = [...document.links].filter((link) => page(link.href) !== page(location.href)).slice(0, 5000);
      return links.map((link) => ({ url: link.href, text: link.textContent.trim().slice(0, 200) }));
    },
  });
  await chrome.storage.session.set({ links: { page: tab.url, links: filterLinks(result, '') } });
  await chrome.tabs.create({ url: chrome.runtime.getURL('links.html') });
}

// For links.html and tests: the same paths as the menu's.
globalThis.svc = { showLinks, handOverAll };
