declare const __VERSION__: string;
/** Whether this is the development server, which also serves the kit. */
declare const __KIT__: boolean;

declare module 'virtual:languages' {
  const languages: Record<string, () => Promise<Record<string, import('./i18n/message').Message>>>;
  export default languages;
}
