// Compiles `locales/<tag>.json` (ICU messages) to plain arrays: one file of JSON for each language, nothing to evaluate.
import { readFileSync, readdirSync } from 'node:fs';
import { compileMessage } from '@lingui/message-utils/compileMessage';
import { pseudo } from './pseudo.mjs';

const folder = new URL('../locales/', import.meta.url);

export function languages() {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -5))
    .sort();
}

export function read(tag) {
  return JSON.parse(readFileSync(new URL(`${tag}.json`, folder), 'utf8'));
}

function compile(tag) {
  const source = tag.startsWith('qps') ? read('en') : read(tag);
  const compiled = {};
  for (const key of Object.keys(source).sort()) {
    let message = compileMessage(source[key], (value) => value);
    if (tag.startsWith('qps')) message = pseudo(message);
    compiled[key] = typeof message === 'string' ? [message] : message;
  }
  return compiled;
}

const list = 'virtual:languages';
const one = 'virtual:messages/';

export function messages() {
  let isDevelopment = false;
  let isBuild = false;
  return {
    name: 'svc-messages',
    configResolved(config) {
      isBuild = config.command === 'build';
      isDevelopment = !isBuild || process.env.SVC_PSEUDO === '1';
    },
    resolveId(id) {
      return id === list || id.startsWith(one) ? `\0${id}` : null;
    },
    load(id) {
      if (id === `\0${list}`) {
        const tags = [...languages(), ...(isDevelopment ? ['qps', 'qps-rtl'] : [])];
        const entries = tags.map((tag) => {
          if (!isBuild) return `${JSON.stringify(tag)}: () => import(${JSON.stringify(one + tag)}).then((module) => module.default)`;
          const file = this.emitFile({ type: 'asset', name: `${tag}.json`, source: JSON.stringify(compile(tag)) });
          return `${JSON.stringify(tag)}: () => fetch(import.meta.ROLLUP_FILE_URL_${file}).then((answer) => answer.json())`;
        });
        return `export default { ${entries.join(', ')} };`;
      }
      if (!id.startsWith(`\0${one}`)) return null;
      const tag = id.slice(one.length + 1);
      for (const watched of languages()) this.addWatchFile(new URL(`${watched}.json`, folder).pathname);
      return `export default JSON.parse(${JSON.stringify(JSON.stringify(compile(tag)))});`;
    },
  };
}
