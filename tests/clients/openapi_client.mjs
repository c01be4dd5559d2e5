// Makes a client from the interface's description, compiles the program that uses it and runs it against the service.
//
//     openapi_client.mjs ADDRESS           its key is in SVC_TOKEN

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const modules = join(process.env.SVC_CLIENTS, 'node_modules');
// Beside the packages, so that compiler and program find them.
const made = mkdtempSync(join(process.env.SVC_CLIENTS, 'client-'));
const run = (...words) => execFileSync(process.execPath, words, { stdio: 'inherit' });

try {
  const [description, types, program] = ['openapi.json', 'api.ts', 'openapi_client.ts'].map((name) => join(made, name));
  const answer = await fetch(`http://${process.argv[2]}/api/v1/openapi.json`);
  writeFileSync(description, await answer.text());
  writeFileSync(join(made, 'package.json'), '{"type": "module"}');
  copyFileSync(new URL('openapi_client.ts', import.meta.url), program);
  run(join(modules, 'openapi-typescript/bin/cli.js'), description, '--default-non-nullable', 'false', '--output', types);
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom', '--module', 'esnext'];
  run(join(modules, 'typescript/bin/tsc'), ...options, '--moduleResolution', 'bundler', program);
  // Types are left out by Node.js itself.
  run(program, process.argv[2]);
} finally {
  rmSync(made, { recursive: true });
}
