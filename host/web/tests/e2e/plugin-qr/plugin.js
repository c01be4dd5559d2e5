// A plugin with a login by QR code, for the scenes: the site's app confirms the code, the session's cookie stays with the
// account.
const SLOT = 'main';
const at = (path) => new URL(path, settings.get('site')).href;

let code = '';

function show(screen) {
  screen.qr(at(`/qr/confirm?code=${code}`), 120, 'Scan it with the app of the site.').pollAfter(200);
}

export const login = {
  async start({ slot }, screen) {
    code = (await http.post(at('/qr/new')).account(slot).send()).json('/code');
    show(screen);
  },
  async poll({ slot }, screen) {
    const answer = await http.get(at('/qr/state')).query('code', code).account(slot).send();
    if (answer.json('/confirmed')) screen.done('anna', 'Anna');
    else show(screen);
  },
  async check({ slot }) {
    return (await http.head(at('/members/')).account(slot).sendAny()).ok;
  },
};

async function look(call) {
  const answer = await http.head(call.url).account(SLOT).sendAny();
  if (answer.status === 403) throw new PluginError('loginRequired', SLOT);
  answer.checked();
}

export async function resolve(call, out) {
  await look(call);
  out.add('file', call.url.pathname.split('/').pop());
}

export async function linkFor(call) {
  await look(call);
  return new Link(call.url).account(SLOT);
}
