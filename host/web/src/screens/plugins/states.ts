// What a plugin is doing, in words.
import type { PluginDto } from '../../rpc/rpc';
import { lookup, t } from '../../i18n/index.svelte';
import type { Tone } from '../../ui/types';

export interface PluginState {
  text: string;
  tone: Tone;
  isAsking: boolean;
}

export function stateOf(plugin: PluginDto): PluginState {
  const is = (text: string, tone: Tone, isAsking = false): PluginState => ({ text, tone, isAsking });
  if (plugin.revoked?.level === 'malicious' || plugin.disabledReason === 'Revoked') return is(t('plugins.revoked'), 'err');
  if (plugin.pending && plugin.codeDigest === '') return is(t('plugins.asks'), 'warn', true);
  if (plugin.loadStatus === 'Failed') return is(t('plugins.notLoaded'), 'err');
  if (plugin.disabledReason === 'CircuitBreaker') return is(t('plugins.tooManyFaults'), 'err');
  if (!plugin.enabled) return is(t('plugins.disabled'), 'plain');
  if (plugin.pending) return is(t('plugins.asksMore'), 'warn', true);
  if (plugin.loadStatus === 'Loading') return is(t('plugins.loading'), 'plain');
  if (plugin.health.state !== 'ok') return is(lookup(`plugins.health.${plugin.health.state}`) ?? plugin.health.state, 'warn');
  return is(t('plugins.enabled'), 'ok');
}

export function capabilityOf(name: string): string {
  return lookup(`plugins.capability.${name}`) ?? name;
}

export function sourceOf(source: string): string {
  return lookup(`plugins.source.${source}`) ?? source;
}
