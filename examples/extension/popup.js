// Progress of what was handed over, the switch, and consent to cookies of the site that is shown.

import { hostOf } from './rules.js';
import { act, progress, settings, store } from './service.js';

const element = (id) => document.getElementById(id);

element('options').onclick = () => chrome.runtime.openOptionsPage();

const { enabled, cookieSites } = await settings();
element('enabled').checked = enabled;
element('enabled').onchange = (event) => store({ enabled: event.target.checked });

const [tab] = await chrome.tabs.query({ active: true, currentWindow: true });
const host = /^https?:/.test(tab?.url ?? '') ? hostOf(tab.url) : '';
if (host) {
  element('cookies-line').hidden = false;
  element('cookies-text').textContent = `Send cookies of ${host} with downloads from there (for files behind a login)`;
  element('cookies').checked = cookieSites.includes(host);
  element('cookies').onchange = async (event) => {
    const rights = { permissions: ['cookies'], origins: [`*://${host}/*`, `*://*.${host}/*`] };
    let sites = (await settings()).cookieSites.filter((site) => site !== host);
    if (event.target.checked && (await chrome.permissions.request(rights))) sites = [...sites, host];
    else await chrome.permissions.remove({ origins: rights.origins }).catch(() => {});
    event.target.checked = sites.includes(host);
    await store({ cookieSites: sites });
  };
}

const bytes = (count) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = Math.min(Math.floor(Math.log2(count || 1) / 10), units.length - 1);
  return `${(count / 1024 ** step).toFixed(step ? 1 : 0)} ${units[step]}`;
};

function button(label, method, gid) {
  const made = Object.assign(document.createElement('button'), { textContent: label });
  made.onclick = () => act(method, gid).then(show, problem);
  return made;
}

function row(download) {
  const [total, done, rate] = ['totalLength', 'completedLength', 'downloadSpeed'].map((name) => Number(download[name] ?? 0));
  const line = document.createElement('li');
  const name = Object.assign(document.createElement('div'), { className: 'name' });
  name.textContent = download.files?.[0]?.path?.split('/').pop() || download.files?.[0]?.uris?.[0]?.uri || download.gid;
  const state = Object.assign(document.createElement('small'), {
    textContent: download.errorMessage && download.status === 'error' ? download.errorMessage
      : `${download.status}, ${bytes(done)} of ${total ? bytes(total) : 'unknown'}${rate ? `, ${bytes(rate)}/s` : ''}`,
  });
  const buttons = Object.assign(document.createElement('div'), { className: 'row' });
  buttons.append(state);
  if (download.status === 'active' || download.status === 'waiting') buttons.append(button('Pause', 'pause', download.gid));
  if (download.status === 'paused') buttons.append(button('Resume', 'unpause', download.gid));
  line.append(name, Object.assign(document.createElement('progress'), { max: total || 1, value: done }), buttons);
  return line;
}

function problem(error) {
  element('problem').textContent = error ? `Svc: ${error.message}` : '';
}

async function show() {
  try {
    const downloads = await progress();
    problem();
    element('list').replaceChildren(...downloads.map(row));
    if (!downloads.length) element('list').textContent = 'Nothing was handed over yet.';
  } catch (error) {
    problem(error.name === 'TypeError' || error.name === 'TimeoutError' ? new Error('no service answers; downloads stay in the browser') : error);
  }
}

await show();
setInterval(show, 1000);
