import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { icons } from './tools/icons.mjs';
import { messages } from './tools/messages.mjs';
import { version } from './tools/version.mjs';

// The service that `npm run dev` and `vite preview` pass calls to. It refuses foreign origins, so the proxy sends its own.
const service = process.env.SVC_URL ?? 'http://127.0.0.1:17800';
const passed = { target: service, ws: true, changeOrigin: true, headers: { origin: service } };
const proxy = { '/rpc': passed, '/api': passed, '/ping': passed, '/blobs': passed, '/metrics': passed };

const begin = ['main.ts', 'screens/tasks/Tasks.svelte'].map((name) => fileURLToPath(new URL(`src/${name}`, import.meta.url)));

interface Graph {
  getModuleInfo(id: string): { importedIds: readonly string[] } | null;
}

/** The modules that a visit begins with: what is imported at once, not only when it is wanted. */
let first: Set<string> | undefined;

function firstModules(graph: Graph): Set<string> {
  const found = new Set(begin);
  for (const id of found) for (const next of graph.getModuleInfo(id)?.importedIds ?? []) found.add(next);
  return found;
}

export default defineConfig(({ command }) => ({
  // Relative, so that the page works below any prefix of a reverse proxy.
  base: './',
  plugins: [icons(), svelte(), messages()],
  define: {
    __VERSION__: JSON.stringify(version()),
    __KIT__: JSON.stringify(command === 'serve'),
  },
  server: { proxy },
  preview: { proxy },
  worker: { format: 'es' },
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: true,
    sourcemap: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: {
      output: {
        // One chunk of what a first visit needs and one of what screens share: text compresses better together.
        codeSplitting: {
          groups: [
            { debugName: 'first', priority: 2, name: (id: string, graph: Graph) => ((first ??= firstModules(graph)).has(id) ? 'first' : null) },
            { name: 'shared', priority: 1, minShareCount: 2 },
          ],
        },
      },
    },
  },
  test: { include: ['tests/unit/**/*.test.ts'], environment: 'node' },
}));
