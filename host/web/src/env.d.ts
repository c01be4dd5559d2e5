declare const __VERSION__: string;
/** Whether this is the development server, which also serves the kit. */
declare const __KIT__: boolean;

declare module 'virtual:languages' {
  import type { Messages } from '@lingui/core';
  const languages: Record<string, () => Promise<{ default: Messages }>>;
  export default languages;
}
