// Settings that were changed on the page and are not saved yet: kept while the user goes from section to section.
import { CallError } from '../../rpc/client';
import type { SettingDto } from '../../rpc/rpc';
import { session } from '../../commands/session.svelte';
import { lookup } from '../../i18n/index.svelte';

class Draft {
  settings = $state.raw<readonly SettingDto[]>([]);
  failed = $state('');
  /** By key. */
  values = $state<Record<string, string>>({});
  /** Keys that go back to their default. */
  errors = $state<Record<string, string>>({});
  isSaving = $state(false);
  /** The revision that the first change was based on. */
  #revision = 0;
  /** Someone else changed settings meanwhile. */
  hasConflict = $state(false);

  readonly count = $derived(Object.keys(this.values).length);

  async load(): Promise<void> {
    this.failed = '';
    try {
      this.settings = (await session.call('daemon.config.schema', undefined)).settings;
    } catch (error) {
      this.failed = error instanceof Error ? error.message : String(error);
    }
  }

  /** The value in force. */
  saved(key: string): string {
    return session.slices.config.values[key] ?? '';
  }

  value(key: string): string {
    return this.values[key] ?? this.saved(key);
  }

  set(key: string, value: string): void {
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
