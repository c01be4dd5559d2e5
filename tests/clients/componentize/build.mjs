// Makes the plugin beside it a component with a toolchain that is not ours: componentize-js, which brings the engine of a
// browser along.
//
//     build.mjs TARGET                    where the component goes. The toolchain is below SVC_CLIENTS.

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

// It can only be imported, and what is imported by its name is looked for beside this file.
const toolchain = `${process.env.SVC_CLIENTS}/node_modules/@bytecodealliance/componentize-js/src/componentize.js`;
const { componentize } = await import(pathToFileURL(toolchain));

const script = await readFile(new URL('plugin.js', import.meta.url), 'utf8');
const witPath = fileURLToPath(new URL('../../../plugin-sdk/wit/plugin.wit', import.meta.url));
const options = { witPath, worldName: 'resolver-world', disableFeatures: ['http', 'fetch-event'] };
const { component } = await componentize(script, options);
await writeFile(process.argv[2], component);
