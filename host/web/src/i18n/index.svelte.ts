// Words in the user's language. `t` is reactive: it reads the active language.
import languages from 'virtual:languages';
import type { Words } from './keys';
import { format, type Message } from './message';

export type Key = keyof Words;
/** Keys whose message takes no arguments. */
export type PlainKey = { [K in Key]: Words[K] extends null ? K : never }[Key];

type Arguments<K extends Key> = Words[K] extends null ? [] : [Words[K]];

let active = $state('en');
/** The tag for plurals and counts: pseudo-languages are English. */
const spoken = $derived(active.startsWith('qps') ? 'en' : active);
let messages = $state.raw<Readonly<Record<string, Message>>>({});

/** The tags that can be chosen. */
export const tags: readonly string[] = Object.keys(languages);

/** The message of a key. */
export function t<K extends Key>(key: K, ...values: Arguments<K>): string {
  return format(messages[key] ?? [key], values[0] ?? {}, spoken);
}

/** The message of a key that is made of names of the service; null if there is none. Such messages take no arguments. */
export function lookup(key: string): string | null {
  const message = messages[key];
  return message ? format(message, {}, spoken) : null;
}

/** The active language. */
export function language(): string {
  return active;
}

/** The tag for `Intl`: pseudo-languages format as English. */
export function locale(): string {
  if (active.startsWith('qps')) return 'en';
  // The browser's region decides on dates, if it speaks the same language.
  return navigator.languages.find((tag) => tag.split('-')[0] === active) ?? active;
}

/** The best of the offered languages for what the browser asks for. */
export function bestLanguage(wanted: readonly string[]): string {
  for (const one of wanted) {
    const exact = tags.find((tag) => tag.toLowerCase() === one.toLowerCase());
    if (exact) return exact;
    const base = one.split('-')[0]?.toLowerCase();
    const near = tags.find((tag) => tag.split('-')[0]?.toLowerCase() === base);
    if (near) return near;
  }
  return 'en';
}

/** Loads and activates a language. */
export async function useLanguage(tag: string): Promise<void> {
  const known = languages[tag] ? tag : 'en';
  messages = await languages[known]!();
  active = known;
  document.documentElement.lang = known.startsWith('qps') ? 'en' : known;
  document.documentElement.dir = known === 'qps-rtl' || /^(ar|fa|he|ur)\b/.test(known) ? 'rtl' : 'ltr';
}
