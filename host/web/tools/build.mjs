// Builds `dist`: the same bytes for the same sources. Text is also kept compressed with brotli.
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

function files(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

export function compressed(bytes) {
  return brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
}

async function make(outDir) {
  await build({ root, configFile: join(root, 'vite.config.ts'), logLevel: 'warn', build: { outDir, emptyOutDir: true } });
  for (const name of files(outDir)) {
    if (!/\.(js|css|html|svg|json|webmanifest)$/.test(name)) continue;
    const bytes = readFileSync(join(outDir, name));
    const small = compressed(bytes);
    if (small.length < bytes.length) writeFileSync(join(outDir, `${name}.br`), small);
  }
}

const committed = join(root, 'dist');
if (process.argv.includes('--check')) {
  const fresh = mkdtempSync(join(tmpdir(), 'svc-web-'));
  try {
    await make(fresh);
    const [here, there] = [files(committed), files(fresh)];
    const differing = [...new Set([...here, ...there])].filter((name) => {
      if (!here.includes(name) || !there.includes(name)) return true;
      return !readFileSync(join(committed, name)).equals(readFileSync(join(fresh, name)));
    });
    if (differing.length > 0) {
      console.error(`host/web/dist is not what the sources give: run host/web/build and commit it.\n  ${differing.join('\n  ')}`);
      process.exitCode = 1;
    } else {
      console.log(`host/web/dist is what the sources give: ${here.length} files`);
    }
  } finally {
    rmSync(fresh, { recursive: true });
  }
} else {
  await make(committed);
  const sum = files(committed).reduce((bytes, name) => bytes + statSync(join(committed, name)).size, 0);
  console.log(`${files(committed).length} files, ${Math.round(sum / 1024)} KiB`);
}
