// What a failure means and what helps. A kind without an entry does not compile.
import type { FailureKind } from '../rpc/rpc';
import type { PlainKey } from '../i18n/index.svelte';

export const remedies = [
  'retry', 'replaceLink', 'editLink', 'openPage', 'signIn', 'logIn', 'retryOne', 'copyReport', 'startOver', 'editChecksum', 'otherFolder',
  'copyPath', 'rename', 'plugin', 'withoutPlugin', 'proxy', 'trust',
] as const;
export type Remedy = (typeof remedies)[number];

export interface Failure {
  text: PlainKey;
  /** The first one is the button of the row. */
  remedies: readonly [Remedy, ...Remedy[]];
}

const later: Failure['remedies'] = ['retry', 'replaceLink'];
const contradiction: Failure['remedies'] = ['retryOne', 'copyReport'];
const folder: Failure['remedies'] = ['otherFolder', 'retry', 'copyPath'];

export const failures: Record<FailureKind, Failure> = {
  'invalid-source': { text: 'failure.invalid-source', remedies: ['editLink'] },
  'unsupported-scheme': { text: 'failure.unsupported-scheme', remedies: ['editLink'] },
  resolve: { text: 'failure.resolve', remedies: later },
  connect: { text: 'failure.connect', remedies: later },
  timeout: { text: 'failure.timeout', remedies: later },
  'too-slow': { text: 'failure.too-slow', remedies: later },
  network: { text: 'failure.network', remedies: later },
  tls: { text: 'failure.tls', remedies: ['retry', 'trust'] },
  proxy: { text: 'failure.proxy', remedies: ['proxy', 'retry'] },
  unauthorized: { text: 'failure.unauthorized', remedies: ['signIn'] },
  forbidden: { text: 'failure.forbidden', remedies: ['replaceLink', 'openPage', 'retry'] },
  'not-found': { text: 'failure.not-found', remedies: ['replaceLink', 'openPage', 'retry'] },
  'still-not-found': { text: 'failure.still-not-found', remedies: ['replaceLink', 'openPage', 'retry'] },
  gone: { text: 'failure.gone', remedies: ['replaceLink', 'openPage'] },
  busy: { text: 'failure.busy', remedies: later },
  'server-error': { text: 'failure.server-error', remedies: later },
  'unexpected-status': { text: 'failure.unexpected-status', remedies: contradiction },
  'too-many-redirects': { text: 'failure.too-many-redirects', remedies: contradiction },
  'forbidden-redirect': { text: 'failure.forbidden-redirect', remedies: ['replaceLink', 'copyReport', 'retry'] },
  'malformed-response': { text: 'failure.malformed-response', remedies: contradiction },
  'range-mismatch': { text: 'failure.range-mismatch', remedies: contradiction },
  encoding: { text: 'failure.encoding', remedies: contradiction },
  'not-the-file': { text: 'failure.not-the-file', remedies: ['replaceLink', 'openPage', 'retry'] },
  changed: { text: 'failure.changed', remedies: ['startOver'] },
  'size-mismatch': { text: 'failure.size-mismatch', remedies: ['startOver', 'retry'] },
  'checksum-mismatch': { text: 'failure.checksum-mismatch', remedies: ['editChecksum', 'startOver'] },
  'disk-full': { text: 'failure.disk-full', remedies: folder },
  'quota-exceeded': { text: 'failure.quota-exceeded', remedies: folder },
  'read-only': { text: 'failure.read-only', remedies: folder },
  'permission-denied': { text: 'failure.permission-denied', remedies: folder },
  directory: { text: 'failure.directory', remedies: folder },
  'in-use': { text: 'failure.in-use', remedies: ['rename', 'retry'] },
  exists: { text: 'failure.exists', remedies: ['rename', 'retry'] },
  'disk-io': { text: 'failure.disk-io', remedies: folder },
  plugin: { text: 'failure.plugin', remedies: ['retry', 'withoutPlugin', 'plugin'] },
  'plugin-unavailable': { text: 'failure.plugin-unavailable', remedies: ['plugin', 'withoutPlugin', 'retry'] },
  'login-required': { text: 'failure.login-required', remedies: ['logIn', 'retry'] },
  'account-limit': { text: 'failure.account-limit', remedies: ['retry'] },
  internal: { text: 'failure.internal', remedies: ['copyReport', 'retry'] },
};
