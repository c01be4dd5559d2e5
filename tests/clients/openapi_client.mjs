// Makes a client's types from the interface's description and compiles a program that uses them.
//
//     openapi_client.mjs ADDRESS

import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const modules = join(process.env.SVC_CLIENTS, 'node_modules');
const made = mkdtempSync(join(tmpdir(), 'svc-client-'));
const run = (script, ...words) => execFileSync(process.execPath, [join(modules, script), ...words], { stdio: 'inherit' });

const answer = await fetch(`http://${process.argv[2]}/api/v1/openapi.json`);
writeFileSync(join(made, 'openapi.json'), await answer.text());
run('openapi-typescript/bin/cli.js', join(made, 'openapi.json'), '--default-non-nullable', 'false', '--output', join(made, 'api.ts'));
writeFileSync(
  join(made, 'use.ts'),
  `import type { components, operations, paths } from './api';
type Task = components['schemas']['TaskDto'];
type Created = paths['/api/v1/tasks']['post']['responses']['200']['content']['application/json'];
const created: Created = { taskId: 'a' };
export const request: components['schemas']['CreateTaskRequest'] = { url: 'http://a.test/' };
export const listed: operations['task_list']['responses']['200']['content']['application/json'] = [] as Task[];
// @ts-expect-error a task's id is a text
export const wrong: Created = { taskId: 5 };
export default created.taskId satisfies string;
`,
);
run('typescript/bin/tsc', '--strict', '--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler', join(made, 'use.ts'));
console.log('compiled');
