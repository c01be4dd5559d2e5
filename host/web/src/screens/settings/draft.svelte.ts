// Settings that were changed on the page and are not saved yet: kept while the user goes from section to section.
// Preferences that the service obeys are no part of its configuration and act at once.
import { CallError } from '../../rpc/client';
import type { SettingDto } from '../../rpc/rpc';
import { session } from '../../commands/session.svelte';
import { lookup } from '../../i18n/index.svelte';

/** The group of settings that are preferences. */
export const PREFERENCES = 'desktop';

class Draft {
  settings = $state.raw<readonly SettingDto[]>([]);
  failed = $state('');
  /** By key. */
  values = $state<Record<string, string>>({});
  errors = $state<Record<string, string>>({});
  /** Preferences on their way to the service. */
  #sent = $state.raw<Record<string, string>>({});
  isSaving = $state(false);
  /** The revision that the first change was based on. */
  #revision = 0;
  /** Someone else changed settings meanwhile. */
  hasConflict = $state(false);

  readonly count = $derived(Object.keys(this.values).length);

  async load(): Promise<void> {
    this.failed = '';
    try {
      const schemas = await Promise.all([session.call('daemon.config.schema', undefined), session.call('agent.preferences.schema', undefined)]);
      this.settings = schemas.flatMap((schema) => schema.settings);
    } catch (error) {
      this.failed = error instanceof Error ? error.message : String(error);
    }
  }

  /** The value in force. */
  saved(key: string): string {
    const preference = this.#preference(key);
    if (preference) return String(session.slices.preferences.values[key] ?? preference.default);
    return session.slices.config.values[key] ?? '';
  }

  value(key: string): string {
    return this.#sent[key] ?? this.values[key] ?? this.saved(key);
  }

  #preference(key: string): SettingDto | undefined {
    return this.settings.find((one) => one.key === key && one.group === PREFERENCES);
  }

  async #prefer({ key, kind, default: usual }: SettingDto, text: string): Promise<void> {
    this.#sent = { ...this.#sent, [key]: text };
    const { [key]: _, ...errors } = this.errors;
    this.errors = errors;
    const value = text === usual ? null : kind === 'switch' ? text === 'true' : text;
    try {
      await session.call('agent.preferences.patch', { values: { [key]: value }, sync: false });
    } catch (error) {
      this.errors = { ...this.errors, [key]: error instanceof Error ? error.message : String(error) };
    }
    const { [key]: __, ...left } = this.#sent;
    this.#sent = left;
  }

  set(key: string, value: string): void {
    const preference = this.#preference(key);
    if (preference) {
      void this.#prefer(preference, value);
      return;
    }
    if (this.count === 0) this.#revision = session.slices.config.revision;
    const { [key]: _, ...others } = this.values;
    this.values = value === this.saved(key) ? others : { ...others, [key]: value };
    const { [key]: __, ...errors } = this.errors;
    this.errors = errors;
  }

  discard(): void {
    this.values = {};
    this.errors = {};
    this.hasConflict = false;
  }

  /** Takes the changes as they are over what others changed meanwhile. */
  async overrule(): Promise<boolean> {
    this.#revision = session.slices.config.revision;
    this.hasConflict = false;
    return this.save();
  }

  async save(): Promise<boolean> {
    this.isSaving = true;
    this.errors = {};
    const usual = new Map(this.settings.map((one) => [one.key, one.default]));
    const entries = Object.entries(this.values);
    try {
      await session.call('daemon.config.patch', {
        expectedRevision: this.#revision,
        values: Object.fromEntries(entries.filter(([key, value]) => usual.get(key) !== value)),
        unset: entries.filter(([key, value]) => usual.get(key) === value).map(([key]) => key),
      });
      this.discard();
      return true;
    } catch (error) {
      if (error instanceof CallError && error.code === 'conflict') this.hasConflict = true;
      else if (error instanceof CallError && error.field) this.errors = { [error.field]: error.message };
      else this.errors = { '': error instanceof Error ? error.message : String(error) };
      return false;
    } finally {
      this.isSaving = false;
    }
  }
}

export const draft = new Draft();

/** The page's own words for a setting, or the service's. */
export function titleOf(setting: SettingDto): string {
  return lookup(`setting.${setting.key}`) ?? setting.key;
}

export function meaningOf(setting: SettingDto): string {
  return lookup(`setting.${setting.key}.help`) ?? setting.meaning;
}

export function choiceOf(setting: SettingDto, choice: string): string {
  return lookup(`setting.${setting.key}=${choice}`) ?? choice;
}
