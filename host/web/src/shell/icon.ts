// What `import X from '@lucide/svelte/icons/x'` becomes: see tools/icons.mjs.
import type { Component } from 'svelte';
import Icon from './Icon.svelte';

type Props = Record<string, unknown>;

/** The component of an icon. */
export function icon(d: string): Component<Props> {
  const component = Icon as unknown as Component<Props>;
  // The properties of a component are getters, which an object that inherits from them keeps.
  return (anchor, props) => component(anchor, Object.create(props, { d: { value: d, enumerable: true } }) as Props);
}
