import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { messages } from './tools/messages.mjs';
import { version } from './tools/version.mjs';

// The service that `npm run dev` and `vite preview` pass calls to. It refuses foreign origins, so the proxy sends its own.
const service = process.env.SVC_URL ?? 'http://127.0.0.1:17800';
const passed = { target: service, ws: true, changeOrigin: true, headers: { origin: service } };
const proxy = { '/rpc': passed, '/api': passed, '/ping': passed, '/blobs': passed, '/metrics': passed };

export default defineConfig(({ command }) => ({
  // Relative, so that the page works below any prefix of a reverse proxy.
  base: './',
  plugins: [svelte(), messages()],
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
  },
  test: { include: ['tests/unit/**/*.test.ts'], environment: 'node' },
}));
