// ==UserScript==
// @name        Download with Svc
// @namespace   svc
// @version     1.0
// @description Alt+click on a link hands the download to Svc, with the cookies and the referrer of the page.
// @match       *://*/*
// @grant       GM_xmlhttpRequest
// @grant       GM_getValue
// @grant       GM_setValue
// @grant       GM_registerMenuCommand
// @connect     127.0.0.1
// @connect     *
// ==/UserScript==

'use strict';

// Values are kept by the userscript manager, where pages cannot read them.
const service = () => GM_getValue('service', 'http://127.0.0.1:17800');
const key = () => GM_getValue('key', '');

GM_registerMenuCommand('Address and access key of Svc …', () => {
  GM_setValue('service', prompt('Address of the service', service()) ?? service());
  GM_setValue('key', prompt('Access key (empty if the service has none)', key()) ?? key());
});

function handOver(url) {
  GM_xmlhttpRequest({
    method: 'POST',
    url: `${service()}/download`,
    // A name that is not empty is required: a page cannot send this header to another origin without asking first.
    headers: { 'Content-Type': 'application/json', 'X-Svc-Client': 'userscript', ...(key() && { 'X-Svc-Token': key() }) },
    // Cookies marked HttpOnly are not visible to a script; sites that need them want a plugin or an extension.
    data: JSON.stringify({ url, referrer: location.href, cookies: document.cookie }),
    onload: (answer) => answer.status === 200 || alert(`Svc refused the download: ${answer.responseText}`),
    onerror: () => alert(`Svc does not answer at ${service()}. Is it running?`),
  });
}

document.addEventListener('click', (event) => {
  const link = event.altKey && event.target.closest('a[href]');
  if (link && /^https?:$/.test(link.protocol)) {
    event.preventDefault();
    handOver(link.href);
  }
}, true);
