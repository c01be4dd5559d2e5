// The colours that canvases paint with, read from the tokens again when the theme changes.

import { untrack } from 'svelte';

export interface Colours {
  track: string;
  done: string;
  active: string;
  ok: string;
  err: string;
  seed: string;
  text: string;
  line: string;
  accent: string;
}

let version = $state(0);
let cached: { version: number; colours: Colours } | null = null;

export function themeChanged(): void {
  // Called from effects, which must not depend on what they change.
  untrack(() => version++);
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged);

/** Reactive: it changes with the theme. */
export function colours(): Colours {
  if (cached?.version === version) return cached.colours;
  const probe = document.createElement('span');
  probe.hidden = true;
  document.body.append(probe);
  const read = (name: string): string => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const accent = read('--accent');
  const found: Colours = {
    track: read('--track'), done: mixed(accent, read('--track')), active: accent, ok: read('--ok'), err: read('--err'), seed: read('--seed'),
    text: read('--text-3'), line: read('--line'), accent,
  };
  probe.remove();
  cached = { version, colours: found };
  return found;
}

/** What is there but still: the accent, a third of the way to the track. */
function mixed(one: string, other: string): string {
  const [a, b] = [one, other].map((text) => (text.match(/[\d.]+/g) ?? []).map(Number));
  return `rgb(${[0, 1, 2].map((at) => Math.round(a![at]! * 0.72 + b![at]! * 0.28)).join(' ')})`;
}
