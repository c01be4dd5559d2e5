import type { Plugin } from 'vite';
export function icons(): Plugin;
export function pathOf(name: string): string;
