// The formatters of the active language and units.
import { locale } from '../i18n/index.svelte';
import { Formats } from '../view/format';
import { preferences } from './preferences.svelte';

const made = new Map<string, Formats>();

export function formats(): Formats {
  const [language, { units }] = [locale(), preferences.values];
  const key = `${language} ${units}`;
  let found = made.get(key);
  if (!found) made.set(key, (found = new Formats(language, units)));
  return found;
}
