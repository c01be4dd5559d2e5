// Permissions of plugins: the service's codes and this page's words.
import { t } from '../i18n/index.svelte';

export interface Permission {
  code: string;
  /** The predicate of a sentence whose subject is the plugin. */
  text: string;
  /** It weakens what protects the user from a plugin. */
  isGrave: boolean;
}

export function permission(code: string): Permission {
  const [kind, ...rest] = code.split(' ');
  const of = rest.join(' ');
  const said = (text: string, isGrave = false): Permission => ({ code, text, isGrave });
  switch (kind) {
    case 'host':
      return said(of.startsWith('http://') ? t('perm.hostClear', { host: of }) : t('perm.host', { host: of }));
    case 'inputHost':
      return said(t('perm.inputHost'));
    case 'secret':
      return said(t('perm.secret', { name: rest[0] ?? '', host: rest.slice(1).join(' ') }));
    case 'cookies:read':
      return said(t('perm.cookies'));
    case 'secrets:derive':
      return said(t('perm.derive'));
    case 'secrets:reveal':
      return said(t('perm.reveal'), true);
    case 'tools:discover':
      return said(t('perm.discover'), true);
    case 'watch':
      return said(t('perm.watch', { pattern: of }), of.includes('://*/'));
    case 'finishedFiles':
      return said(t('perm.finishedFiles'));
    case 'tool':
      return said(t('perm.tool', { name: of }));
    default:
      // Of a newer service: shown as it is, and as a warning, because what it allows is not known here.
      return said(code, true);
  }
}

export interface Difference {
  added: string[];
  same: string[];
  gone: string[];
}

export function difference(before: readonly string[], after: readonly string[]): Difference {
  return {
    added: after.filter((code) => !before.includes(code)),
    same: after.filter((code) => before.includes(code)),
    gone: before.filter((code) => !after.includes(code)),
  };
}
