// Files as a tree with ticks: a folder is ticked, not ticked, or partly.

export interface Leaf {
  /** With `/` between names. */
  path: string;
  size: number;
}

export interface Node {
  /** A folder's path ends with `/`. */
  path: string;
  name: string;
  depth: number;
  /** The place of the file among the leaves; nothing for a folder. */
  leaf: number | null;
  /** Leaves below, as a range of `order`. */
  from: number;
  to: number;
  size: number;
}

export interface Tree {
  nodes: Node[];
  /** The leaves in the order of the tree. */
  order: number[];
}

export function grow(leaves: readonly Leaf[]): Tree {
  interface Folder {
    folders: Map<string, Folder>;
    files: { name: string; leaf: number }[];
  }
  const root: Folder = { folders: new Map(), files: [] };
  leaves.forEach((leaf, at) => {
    const names = leaf.path.split('/').filter((name) => name !== '');
    let folder = root;
    for (const name of names.slice(0, -1)) {
      let next = folder.folders.get(name);
      if (!next) folder.folders.set(name, (next = { folders: new Map(), files: [] }));
      folder = next;
    }
    folder.files.push({ name: names.at(-1) ?? leaf.path, leaf: at });
  });
  const tree: Tree = { nodes: [], order: [] };
  const collator = new Intl.Collator(undefined, { numeric: true });
  const walk = (folder: Folder, prefix: string, depth: number): number => {
    let sum = 0;
    for (const [name, inner] of [...folder.folders].sort((a, b) => collator.compare(a[0], b[0]))) {
      const node: Node = { path: `${prefix}${name}/`, name, depth, leaf: null, from: tree.order.length, to: 0, size: 0 };
      tree.nodes.push(node);
      node.size = walk(inner, node.path, depth + 1);
      node.to = tree.order.length;
      sum += node.size;
    }
    for (const { name, leaf } of [...folder.files].sort((a, b) => collator.compare(a.name, b.name))) {
      const { size } = leaves[leaf]!;
      tree.nodes.push({ path: prefix + name, name, depth, leaf, from: tree.order.length, to: tree.order.length + 1, size });
      tree.order.push(leaf);
      sum += size;
    }
    return sum;
  };
  walk(root, '', 0);
  return tree;
}

export type Tick = 'all' | 'none' | 'some';

export function tickOf(tree: Tree, node: Node, ticked: ReadonlySet<number>): Tick {
  let count = 0;
  for (let at = node.from; at < node.to; at++) if (ticked.has(tree.order[at]!)) count++;
  return count === 0 ? 'none' : count === node.to - node.from ? 'all' : 'some';
}

/** Ticks all leaves below, or none if all are ticked. */
export function ticked(tree: Tree, node: Node, before: ReadonlySet<number>): Set<number> {
  const after = new Set(before);
  const isAll = tickOf(tree, node, before) === 'all';
  for (let at = node.from; at < node.to; at++) {
    if (isAll) after.delete(tree.order[at]!);
    else after.add(tree.order[at]!);
  }
  return after;
}

/** The nodes below no closed folder. */
export function visible(tree: Tree, closed: ReadonlySet<string>): Node[] {
  const shown: Node[] = [];
  let hiddenBelow: number | null = null;
  for (const node of tree.nodes) {
    if (hiddenBelow !== null && node.depth > hiddenBelow) continue;
    hiddenBelow = node.leaf === null && closed.has(node.path) ? node.depth : null;
    shown.push(node);
  }
  return shown;
}

/** `*.dng >10M`: names by pattern, `>` and `<` by size; several of a kind are alternatives for names. */
export function matching(leaves: readonly Leaf[], pattern: string, parseSize: (text: string) => number | null): Set<number> {
  const names: RegExp[] = [];
  const bounds: ((size: number) => boolean)[] = [];
  for (const part of pattern.split(/\s+/).filter(Boolean)) {
    const limit = /^[<>]/.test(part) ? parseSize(part.slice(1)) : null;
    if (limit !== null) {
      bounds.push(part.startsWith('>') ? (size) => size > limit : (size) => size < limit);
      continue;
    }
    const text = part.includes('*') || part.includes('?') ? part : `*${part}*`;
    const source = text.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*').replaceAll('?', '.');
    names.push(new RegExp(`^(?:.*/)?${source}$`, 'i'));
  }
  const found = new Set<number>();
  leaves.forEach((leaf, at) => {
    if ((names.length === 0 || names.some((name) => name.test(leaf.path))) && bounds.every((bound) => bound(leaf.size))) found.add(at);
  });
  return found;
}
