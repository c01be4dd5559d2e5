// Icons of Lucide as the data of one path each, drawn by `src/shell/Icon.svelte`: a component for each would be five times as
// much script, and slower in a list.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../node_modules/@lucide/svelte/dist/icons/', import.meta.url);
const from = '@lucide/svelte/icons/';
const prefix = '\0icon:';
const factory = fileURLToPath(new URL('../src/shell/icon.ts', import.meta.url));

function ellipse(cx, cy, rx, ry) {
  return `M${cx - rx} ${cy}a${rx} ${ry} 0 1 0 ${2 * rx} 0a${rx} ${ry} 0 1 0 ${-2 * rx} 0z`;
}

function rectangle(x, y, width, height, rx, ry) {
  if (rx === 0) return `M${x} ${y}h${width}v${height}h${-width}z`;
  const corner = (dx, dy) => `a${rx} ${ry} 0 0 1 ${dx} ${dy}`;
  return `M${x + rx} ${y}h${width - 2 * rx}${corner(rx, ry)}v${height - 2 * ry}${corner(-rx, ry)}h${2 * rx - width}${corner(-rx, -ry)}v${2 * ry - height}${corner(rx, -ry)}z`;
}

const shapes = {
  // A relative beginning is relative to the origin, also behind another shape.
  path: ({ d }) => (d.startsWith('m') ? `M0 0${d}` : d),
  line: ({ x1, y1, x2, y2 }) => `M${x1} ${y1}L${x2} ${y2}`,
  polyline: ({ points }) => `M${points}`,
  polygon: ({ points }) => `M${points}z`,
  circle: ({ cx, cy, r, fill }) => ellipse(+cx, +cy, +r, +r) + (fill ? `M${cx} ${cy}h.01` : ''),
  ellipse: ({ cx, cy, rx, ry }) => ellipse(+cx, +cy, +rx, +ry),
  rect: ({ x = 0, y = 0, width, height, rx = 0, ry = rx }) => rectangle(+x, +y, +width, +height, +rx, +ry),
};
const known = new Set(['d', 'x', 'y', 'x1', 'y1', 'x2', 'y2', 'cx', 'cy', 'r', 'rx', 'ry', 'width', 'height', 'points']);

/** The data of an icon. Fails for a shape or an attribute that it does not know, such as a filled part. */
export function pathOf(name) {
  const [, file] = /from ["']\.\/([\w-]+\.svelte)["']/.exec(readFileSync(new URL(`${name}.js`, folder), 'utf8'));
  const { node } = JSON.parse(/const iconData = (\{.*\});/.exec(readFileSync(new URL(file, folder), 'utf8'))[1]);
  return node
    .map(([tag, attributes]) => {
      // A point in the middle fills a dot.
      const isDot = tag === 'circle' && Number(attributes.r) <= 0.5;
      const foreign = Object.keys(attributes).filter((key) => !known.has(key) && !(key === 'fill' && isDot));
      if (!shapes[tag] || foreign.length > 0) throw new Error(`icon ${name}: <${tag}> with ${foreign}`);
      return shapes[tag](attributes);
    })
    .join('');
}

export function icons() {
  return {
    name: 'svc-icons',
    enforce: 'pre',
    resolveId(id) {
      return id.startsWith(from) ? prefix + id.slice(from.length) : null;
    },
    load(id) {
      if (!id.startsWith(prefix)) return null;
      return `import { icon } from ${JSON.stringify(factory)};\nexport default icon(${JSON.stringify(pathOf(id.slice(prefix.length)))});`;
    },
  };
}
