// Builds `dist`: the same bytes for the same sources. Text is also kept compressed with brotli.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

/** Brotli bytes: the scripts of a first visit, from the entry through the list, those of every screen, and one language. */
const BUDGET = { script: 75_000, everyScript: 150_000, style: 14_000, language: 20_000 };

function weigh(outDir) {
  const size = (name) => statSync(existsSync(join(outDir, `${name}.br`)) ? join(outDir, `${name}.br`) : join(outDir, name)).size;
  const scripts = new Set();
  const styles = new Set();
  const follow = (name) => {
    if (scripts.has(name)) return;
    scripts.add(name);
    for (const [, next] of readFileSync(join(outDir, name), 'utf8').matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) follow(`assets/${next}`);
  };
  const all = files(outDir);
  const page = readFileSync(join(outDir, 'index.html'), 'utf8');
  for (const [, name] of page.matchAll(/"\.\/(assets\/[\w.-]+)"/g)) name.endsWith('.css') ? styles.add(name) : follow(name);
  for (const name of all) {
    if (/assets\/worker-[\w-]+\.js$/.test(name)) follow(name);
  }
  const sum = (names) => [...names].reduce((bytes, name) => bytes + size(name), 0);
  const languages = all.filter((name) => /assets\/(en|zh)-[\w-]+\.json$/.test(name)).map(size);
  const found = { script: sum(scripts), everyScript: sum(all.filter((name) => name.endsWith('.js'))), style: sum(styles), language: Math.max(...languages) };
  for (const [what, most] of Object.entries(BUDGET)) {
    console.log(`${what}: ${(found[what] / 1000).toFixed(1)} of ${most / 1000} kB`);
    if (found[what] > most) {
      console.error(`${what}: more than the budget of ${most / 1000} kB`);
      process.exitCode = 1;
    }
  }
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
    weigh(fresh);
    if (differing.length > 0) {
      console.error(`host/web/dist is not what the sources give: run host/web/build and commit it.\n  ${differing.slice(0, 20).join('\n  ')}${differing.length > 20 ? `\n  and ${differing.length - 20} more` : ''}`);
      process.exitCode = 1;
    } else {
      console.log(`host/web/dist is what the sources give: ${here.length} files`);
    }
  } finally {
    rmSync(fresh, { recursive: true });
  }
} else {
  await make(committed);
  weigh(committed);
  const sum = files(committed).reduce((bytes, name) => bytes + statSync(join(committed, name)).size, 0);
  console.log(`${files(committed).length} files, ${Math.round(sum / 1024)} KiB`);
}
