// What of others is in this page. A test compares it with the dependencies.
export const licences = [
  { name: '@lucide/svelte', licence: 'ISC' },
  { name: 'svelte', licence: 'MIT' },
  { name: 'uqr', licence: 'MIT' },
] as const;
