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

export type Tone = 'plain' | 'accent' | 'ok' | 'warn' | 'err' | 'seed';
