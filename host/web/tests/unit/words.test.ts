import { readdirSync, readFileSync } from 'node:fs';
import { compileMessage } from '@lingui/message-utils/compileMessage';
import { beforeAll, describe, expect, it } from 'vitest';
import languages from 'virtual:languages';
import { problems } from '../../tools/words.mjs';
import { pseudo } from '../../tools/pseudo.mjs';
import { permission, difference } from '../../src/ui/permissions';
import { useLanguage, t } from '../../src/i18n/index.svelte';
import { format } from '../../src/i18n/message';

const folder = new URL('../../locales/', import.meta.url);
const tags = readdirSync(folder).map((name) => name.replace('.json', ''));
const words = (tag: string): Record<string, string> => JSON.parse(readFileSync(new URL(`${tag}.json`, folder), 'utf8'));

/** Only what JSON can say: nothing to evaluate. */
function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isPlain);
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isPlain);
  return value === undefined || ['string', 'number'].includes(typeof value);
}

describe('words', () => {
  it('are the same keys and arguments in every language', () => {
    expect(problems()).toEqual([]);
  });

  it.each(tags)('of %s are compiled to plain data', async (tag) => {
    const messages = await languages[tag]!();
    expect(Object.keys(messages)).toEqual(Object.keys(words('en')).sort());
    expect(isPlain(messages)).toBe(true);
  });

  it('have a meaning for every setting that has a title', () => {
    const keys = Object.keys(words('en')).filter((key) => /^setting\.[^=]+$/.test(key) && !key.endsWith('.help'));
    expect(keys.filter((key) => !(`${key}.help` in words('en')))).toEqual([]);
  });

  it.each(tags)('of %s count without gluing', async (tag) => {
    const messages = await languages[tag]!();
    const told = (count: number): string => format(messages['queues.tasks']!, { count }, tag);
    expect(told(1)).toMatch(/1|one/);
    expect(told(12)).toContain('12');
    expect(told(12_345)).toContain('12,345');
    expect(told(0)).not.toContain('0');
  });

  it('take the form of the language, and an exact number before it', () => {
    const message = compileMessage('{count, plural, =0 {nothing} one {# file of {name}} few {# files, few} other {# files}}.', (value: string) => value) as never;
    const told = (count: number, tag: string): string => format(message, { count, name: '#1' }, tag);
    expect(told(0, 'en')).toBe('nothing.');
    expect(told(1, 'en')).toBe('1 file of #1.');
    expect(told(2, 'en')).toBe('2 files.');
    expect(told(2, 'pl')).toBe('2 files, few.');
    expect(told(1, 'zh')).toBe('1 files.');
  });

  it('are longer and bracketed in the pseudo-language', () => {
    const text = pseudo(['Save ', ['name']]);
    expect(text[0]).toBe('[');
    expect(text.at(-1)).toBe(']');
    expect(text).toContainEqual(['name']);
    expect(text[1]).not.toBe('Save ');
  });
});

describe('permissions', () => {
  // As the crate plugin-host writes them.
  const codes = ['host https://a.example', 'host http://a.example', 'inputHost', 'secret token https://a.example', 'cookies:read', 'secrets:derive', 'secrets:reveal', 'tools:discover', 'watch https://*/x', 'finishedFiles', 'tool ffmpeg'];
  beforeAll(() => {
    // What `useLanguage` sets on a page.
    globalThis.document = { documentElement: {} } as Document;
    return useLanguage('en');
  });

  it.each(codes)('%s has words', (code) => {
    expect(permission(code).text).not.toBe(code);
    expect(permission(code).text.length).toBeGreaterThan(8);
  });

  it('are grave where they weaken what protects the user, and if they are unknown', () => {
    const grave = codes.filter((code) => permission(code).isGrave);
    expect(grave).toEqual(['secrets:reveal', 'tools:discover', 'watch https://*/x']);
    expect(permission('of a newer service')).toEqual({ code: 'of a newer service', text: 'of a newer service', isGrave: true });
    expect(permission('watch https://one.example/*').isGrave).toBe(false);
  });

  it('keep foreign text as it is', () => {
    expect(permission('host https://{x}<b>').text).toBe(t('perm.host', { host: 'https://{x}<b>' }));
  });

  it('are compared', () => {
    expect(difference(['a', 'b'], ['b', 'c'])).toEqual({ added: ['c'], same: ['b'], gone: ['a'] });
  });
});
