// Settings, and pairing with the service.

import { check, setUp, settings, store } from './service.js';

const form = document.getElementById('form');
const report = document.getElementById('problem');
const now = await settings();
for (const name of ['service', 'key', 'always', 'never', 'sites']) form.elements[name].value = now[name];
form.elements.minMiB.value = now.minBytes / 1024 / 1024;
form.elements.cookieSites.value = now.cookieSites.join('\n');

form.onsubmit = async (event) => {
  event.preventDefault();
  const value = (name) => form.elements[name].value.trim();
  const address = new URL(value('service'));
  try {
    // Requests to other hosts than this machine need the user's leave, once.
    const origins = [`${address.protocol}//${address.hostname}/*`];
    if (!(await chrome.permissions.request({ origins }))) throw new Error(`without leave to reach ${address.hostname}, nothing can be handed over`);
    await store({
      service: (address.origin + address.pathname).replace(/\/$/, ''),
      key: value('key'),
      minBytes: Math.round(Number(value('minMiB')) * 1024 * 1024),
      always: value('always'),
      never: value('never'),
      sites: value('sites'),
    });
    if (value('code')) {
      await setUp(value('key'), value('code'));
      form.elements.code.value = '';
    }
    await check();
    report.textContent = 'Saved; the service answers.';
  } catch (error) {
    report.textContent = error.name === 'TypeError' ? 'Saved, but no service answers at this address.' : `Saved, but: ${error.message}`;
  }
};
