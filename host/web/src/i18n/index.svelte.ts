// Words in the user's language. `t` is reactive: it reads the active language.
import { i18n } from '@lingui/core';
import languages from 'virtual:languages';
import type { Words } from './keys';

export type Key = keyof Words;
/** Keys whose message takes no arguments. */
export type PlainKey = { [K in Key]: Words[K] extends null ? K : never }[Key];

type Arguments<K extends Key> = Words[K] extends null ? [] : [Words[K]];

let active = $state('en');

/** The tags that can be chosen. */
export const tags: readonly string[] = Object.keys(languages);

/** The message of a key. */
export function t<K extends Key>(key: K, ...values: Arguments<K>): string {
  void active;
  return i18n._(key, values[0] ?? {});
}

/** The message of a key that is made of names of the service; null if there is none. Such messages take no arguments. */
export function lookup(key: string): string | null {
  void active;
  return key in i18n.messages ? i18n._(key) : null;
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
  const module = await languages[known]!();
  i18n.loadAndActivate({ locale: known.startsWith('qps') ? 'en' : known, messages: module.default });
  active = known;
  document.documentElement.lang = known.startsWith('qps') ? 'en' : known;
  document.documentElement.dir = known === 'qps-rtl' || /^(ar|fa|he|ur)\b/.test(known) ? 'rtl' : 'ltr';
}
