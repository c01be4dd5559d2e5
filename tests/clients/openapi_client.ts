// A program over the client that is generated from the interface's description: it compiles only if its types fit, and it
// asks a running service, which has to answer as they say.

import createClient from 'openapi-fetch';
import type { components, paths } from './api';

declare const process: { argv: string[]; env: Record<string, string | undefined> };

type Task = components['schemas']['TaskDto'];

// Nothing that is waited for takes this long.
const PATIENCE = 30_000;

const baseUrl = `http://${process.argv[2]}`;
const key = process.env.SVC_TOKEN ?? '';
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
let calls = 0;

function demand(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(`not as described: ${JSON.stringify(what)}`);
}

// What a call answers, if it is what the description promises.
async function done<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  calls += 1;
  demand(data !== undefined, { url: response.url, status: response.status, error });
  return data;
}

const path = (id: string) => ({ params: { path: { id } } });

const info = await done(api.GET('/api/v1/info'));
demand(info.version.length > 0, info);
const [queue] = await done(api.GET('/api/v1/queues'));
demand(typeof queue?.maxConcurrent === 'number', queue);

// A task from its making to its file: the service downloads its own description.
const url = `${baseUrl}/api/v1/openapi.json`;
const { taskId } = await done(api.POST('/api/v1/tasks', { body: { url: `${baseUrl}/nowhere`, startPaused: true } }));
const view = () => done(api.GET('/api/v1/tasks/{id}', path(taskId)));
await done(api.POST('/api/v1/tasks/{id}/rename', { ...path(taskId), body: { fileName: 'mine.json' } }));
await done(api.POST('/api/v1/tasks/{id}/url', { ...path(taskId), body: { url } }));
await done(api.PUT('/api/v1/tasks/{id}/continue', path(taskId)));
let task: Task = await view();
for (const end = Date.now() + PATIENCE; task.status !== 3; task = await view()) {
  demand(task.status !== 4 && Date.now() < end, task);
}
demand(task.fileName === 'mine.json' && task.url === url, task);
const file = await done(api.GET('/api/web/files/tasks/{id}', { ...path(taskId), parseAs: 'text' }));
demand(String(file) === (await (await fetch(url)).text()), file);

// Lists, a page at a time.
const { taskId: other } = await done(api.POST('/api/v1/tasks', { body: { url, startPaused: true } }));
const page = await api.GET('/api/v1/tasks', { params: { query: { limit: 1 } } });
demand(page.data?.length === 1 && page.data[0]?.taskId === other, page.data);
const cursor = page.response.headers.get('X-Next-Cursor');
demand(cursor !== null, 'X-Next-Cursor');
const rest = await done(api.GET('/api/v1/tasks', { params: { query: { limit: 1, cursor } } }));
demand(rest[0]?.taskId === taskId, rest);
for (const id of [taskId, other]) {
  const query = { deleteFiles: true };
  await done(api.DELETE('/api/v1/tasks/{id}', { params: { path: { id }, query } }));
}

// What is behind a URL that no plugin claims, what plugins are and come from, and the credentials of sites.
const preview = await done(api.POST('/api/v1/resolve/preview', { body: { url } }));
demand(preview.items?.length === 0 && !preview.error, preview);
demand((await done(api.GET('/api/v1/groups'))).length === 0, 'there is a group');
await done(api.GET('/api/v1/plugins'));
demand((await done(api.GET('/api/v1/market/sources'))).length > 0, 'there is no source');
const saved = await done(api.PUT('/api/v1/site-auth', { body: { site: 'https://a.test', user: 'u', pass: 'p' } }));
demand(saved.user === 'u' && !JSON.stringify(saved).includes('"p"'), saved);
await done(api.DELETE('/api/v1/site-auth/{site}', { params: { path: { site: saved.site } } }));

// Refusals are described as well.
const empty = await api.POST('/api/v1/groups', { body: { items: [] } });
demand(empty.response.status === 400 && empty.error?.success === false, empty.error);
const missing = await api.GET('/api/v1/tasks/{id}', path('00000000-0000-0000-0000-000000000000'));
demand(missing.response.status === 404 && missing.error?.success === false, missing.error);
const stranger = await createClient<paths>({ baseUrl }).GET('/api/v1/tasks');
demand(stranger.response.status === 401 && stranger.error?.success === false, stranger.error);

// @ts-expect-error a task needs a URL
void (() => api.POST('/api/v1/tasks', { body: { fileName: 'x' } }));
// @ts-expect-error a task's size is a number
void (task.totalBytes satisfies string);

console.log(`compiled; ${calls} calls were answered as described`);
