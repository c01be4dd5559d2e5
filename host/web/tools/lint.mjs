// What types cannot say: layers run one way, foreign text never becomes markup, no words outside of locales.
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'svelte/compiler';
import { problems as wordProblems } from './words.mjs';

const src = fileURLToPath(new URL('../src', import.meta.url));
const layers = ['rpc', 'store', 'view', 'i18n', 'commands', 'shell', 'ui', 'screens', 'app'];
// Tables of keys beside what they name: a type, so nothing is loaded.
const typeOnly = new Set(['view i18n', 'store rpc']);
const found = [];

function note(file, text) {
  found.push(`${relative(join(src, '..'), file)}: ${text}`);
}

function layerOf(file) {
  const first = relative(src, file).split('/')[0];
  return layers.indexOf(first);
}

function imports(file, text) {
  for (const [, isType, target] of text.matchAll(/(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]/g)) {
    if (!target.startsWith('.')) continue;
    const [from, to] = [layerOf(file), layerOf(resolve(dirname(file), target))];
    if (from < 0 || to < 0 || to <= from) continue;
    if (isType && typeOnly.has(`${layers[from]} ${layers[to]}`)) continue;
    note(file, `${layers[from]} must not import from ${layers[to]} (${target})`);
  }
}

const forbidden = [
  [/\{@html\b/, '{@html} makes markup of text'],
  [/\.(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write\b/, 'text must not become markup'],
  [/\beval\s*\(|new Function\s*\(/, 'the policy forbids eval'],
  [/\sstyle="/, 'the policy forbids style attributes: style:name={value}'],
  [/localStorage\.setItem\((?!LOCAL,)/, 'only the look may be kept in localStorage'],
];

function walk(node, visit) {
  if (!node || typeof node !== 'object') return;
  if (Array.isArray(node)) {
    for (const one of node) walk(one, visit);
    return;
  }
  if (typeof node.type === 'string' && visit(node) === false) return;
  for (const [key, value] of Object.entries(node)) if (key !== 'metadata') walk(value, visit);
}

// Names that are the same in every language, and paths.
const names = /^(?:HTTP|WebSocket|MIT OR Apache-2\.0|\/[\w/{}.-]+|svc:\/\/\S+)$/;
const spoken = new Set(['aria-label', 'title', 'placeholder', 'alt', 'label', 'help']);

function literals(file, text) {
  const ast = parse(text, { modern: true });
  walk(ast.fragment, (node) => {
    if (node.type === 'StyleDirective') return false;
    if (node.type === 'Text' && !names.test(node.data.trim()) && /\p{L}{2,}/u.test(node.data)) note(file, `words outside of locales: ${JSON.stringify(node.data.trim().slice(0, 60))}`);
    if (node.type === 'Attribute' && Array.isArray(node.value)) {
      for (const part of node.value) {
        if (part.type === 'Text' && spoken.has(node.name) && !names.test(part.data.trim()) && /\p{L}{2,}/u.test(part.data)) note(file, `words outside of locales: ${node.name}="${part.data}"`);
      }
      return false;
    }
    if (node.type === 'RegularElement' && node.name === 'a') {
      const attributes = new Map(node.attributes.filter((one) => one.type === 'Attribute').map((one) => [one.name, one]));
      if (attributes.has('target') && !JSON.stringify(attributes.get('rel')?.value ?? '').includes('noopener noreferrer')) note(file, 'a link to a new tab needs rel="noopener noreferrer"');
    }
    return true;
  });
}

for (const entry of readdirSync(src, { withFileTypes: true, recursive: true })) {
  if (!entry.isFile() || !/\.(ts|svelte)$/.test(entry.name)) continue;
  const file = join(entry.parentPath, entry.name);
  const text = readFileSync(file, 'utf8');
  imports(file, text);
  for (const [pattern, why] of forbidden) if (pattern.test(text)) note(file, why);
  if (entry.name.endsWith('.svelte')) literals(file, text);
}
found.push(...wordProblems());
for (const one of found) console.error(one);
if (found.length === 0) console.log('layers, words and forbidden constructs: none wrong');
process.exitCode = found.length === 0 ? 0 : 1;
