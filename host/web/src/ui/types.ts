// What components pass to each other.
import type { Component } from 'svelte';

export type Icon = Component<{ size?: number; strokeWidth?: number; class?: string }>;

export interface Choice {
  value: string;
  label: string;
  /** A second line. */
  note?: string;
  disabled?: boolean;
}

export type MenuEntry =
  | {
      kind?: 'item';
      label: string;
      icon?: Icon;
      keys?: string;
      danger?: boolean;
      disabled?: boolean;
      /** Present for an entry with a tick. */
      checked?: boolean;
      run: () => void;
    }
  | { kind: 'line' }
  | { kind: 'heading'; label: string };

export type Tone = 'plain' | 'accent' | 'ok' | 'warn' | 'err' | 'seed';
