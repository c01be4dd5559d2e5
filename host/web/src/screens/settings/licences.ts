// What of others is in this page. A test compares it with the dependencies.
export const licences = [
  { name: '@internationalized/date', licence: 'Apache-2.0' },
  { name: '@lingui/core', licence: 'MIT' },
  { name: '@lucide/svelte', licence: 'ISC' },
  { name: '@tanstack/virtual-core', licence: 'MIT' },
  { name: 'bits-ui', licence: 'MIT' },
  { name: 'svelte', licence: 'MIT' },
  { name: 'uqr', licence: 'MIT' },
] as const;
