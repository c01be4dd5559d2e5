// Screens by name. A screen is a folder with an `index.ts` whose default export is a `Screen`; its component is a chunk
// of its own.
import type { Component } from 'svelte';
import type { PlainKey } from '../i18n/index.svelte';

export interface Screen {
  /** The first part of the route. */
  name: string;
  title: PlainKey;
  icon: Component<{ size?: number; strokeWidth?: number; class?: string }>;
  /** The place in the navigation. */
  order: number;
  /** Whether the navigation lists it. */
  isListed: boolean;
  load: () => Promise<{ default: Component }>;
}

const found = import.meta.glob<{ default: Screen }>('./*/index.ts', { eager: true });

export const screens: readonly Screen[] = Object.values(found)
  .map((module) => module.default)
  .sort((a, b) => a.order - b.order);

export function screen(name: string): Screen | undefined {
  return screens.find((one) => one.name === name);
}
