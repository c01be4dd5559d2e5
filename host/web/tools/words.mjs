// Keeps the words: `node tools/words.mjs add FILE` merges `{ "key": ["English", "中文"] }` into the two languages,
// `node tools/words.mjs types` writes the typed keys, `node tools/words.mjs check` compares keys, arguments and types.
import { readFileSync, writeFileSync } from 'node:fs';
import { compileMessage } from '@lingui/message-utils/compileMessage';
import { languages, read } from './messages.mjs';

const target = new URL('../src/i18n/keys.ts', import.meta.url);

function write(tag, words) {
  const sorted = Object.fromEntries(Object.entries(words).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
  writeFileSync(new URL(`../locales/${tag}.json`, import.meta.url), `${JSON.stringify(sorted, null, 2)}\n`);
}

function collect(tokens, found) {
  if (typeof tokens === 'string') return found;
  for (const token of tokens) {
    if (typeof token === 'string') continue;
    const [name, format, options] = token;
    // In a plural, `#` compiles to a nested argument without a format.
    if (name !== '#') found.set(name, format === 'plural' || format === 'selectordinal' || format === 'number' ? 'number' : (found.get(name) ?? 'string | number'));
    if (options && typeof options === 'object') {
      for (const option of Object.values(options)) if (Array.isArray(option)) collect(option, found);
    }
  }
  return found;
}

export function parameters(text) {
  return collect(compileMessage(text, (value) => value), new Map());
}

export function types() {
  const english = read('en');
  const lines = Object.keys(english).sort().map((key) => {
    const found = [...parameters(english[key])].sort(([a], [b]) => (a < b ? -1 : 1));
    const shape = found.length === 0 ? 'null' : `{ ${found.map(([name, kind]) => `${name}: ${kind}`).join('; ')} }`;
    return `  ${JSON.stringify(key)}: ${shape};`;
  });
  return `// Written by tools/words.mjs from locales/en.json.\nexport interface Words {\n${lines.join('\n')}\n}\n`;
}

export function problems() {
  const found = [];
  const english = read('en');
  for (const tag of languages()) {
    const words = read(tag);
    for (const key of Object.keys(english)) {
      if (!(key in words)) {
        found.push(`locales/${tag}.json has no ${key}`);
        continue;
      }
      const [here, there] = [words[key], english[key]].map((text) => [...parameters(text).keys()].sort().join(','));
      if (here !== there) found.push(`locales/${tag}.json: ${key} has the arguments [${here}], English has [${there}]`);
    }
    for (const key of Object.keys(words)) if (!(key in english)) found.push(`locales/${tag}.json: ${key} is not in en.json`);
  }
  if (readFileSync(target, 'utf8') !== types()) found.push('src/i18n/keys.ts is not what locales/en.json gives: node tools/words.mjs types');
  return found;
}

if (process.argv[1]?.endsWith('words.mjs')) {
  const [, , what, file] = process.argv;
  if (what === 'add') {
    const more = JSON.parse(readFileSync(file, 'utf8'));
    const [english, chinese] = [read('en'), read('zh')];
    for (const [key, [en, zh]] of Object.entries(more)) {
      english[key] = en;
      chinese[key] = zh;
    }
    write('en', english);
    write('zh', chinese);
    writeFileSync(target, types());
  } else if (what === 'types') {
    writeFileSync(target, types());
  } else {
    const found = problems();
    for (const problem of found) console.error(problem);
    process.exitCode = found.length === 0 ? 0 : 1;
  }
}
