// The links of a page, for a choice.

import { filterLinks } from './rules.js';
import { handOverAll } from './service.js';

const element = (id) => document.getElementById(id);
const { links: { page, links } = { page: '', links: [] } } = await chrome.storage.session.get('links');
const chosen = new Set();
element('page').textContent = page;

function show() {
  const shown = filterLinks(links, element('filter').value);
  element('list').replaceChildren(...shown.map(({ url, text }) => {
    const line = document.createElement('li');
    const label = Object.assign(document.createElement('label'), { className: 'line' });
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: chosen.has(url) });
    box.onchange = () => (box.checked ? chosen.add(url) : chosen.delete(url), count());
    const name = Object.assign(document.createElement('span'), { className: 'name', textContent: text ? `${text} – ${url}` : url });
    label.append(box, name);
    line.append(label);
    return line;
  }));
  element('all').onchange = ({ target }) => {
    shown.forEach(({ url }) => (target.checked ? chosen.add(url) : chosen.delete(url)));
    show();
  };
  count();
}

function count() {
  element('send').textContent = `Download ${chosen.size} with Svc`;
  element('send').disabled = chosen.size === 0;
}

element('filter').oninput = () => ((element('all').checked = false), show());
element('send').onclick = async () => {
  try {
    await handOverAll([...chosen], page);
    element('problem').textContent = `${chosen.size} handed over.`;
  } catch (error) {
    element('problem').textContent = `Svc: ${error.message}`;
  }
};
show();
