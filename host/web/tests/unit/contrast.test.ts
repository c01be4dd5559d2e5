// Every colour that text or a control has, on everything that it is drawn on, by WCAG's formula.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('../../src/styles/tokens.css', import.meta.url), 'utf8');
const tokens = new Map([...css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/gi)].map(([, name, light, dark]) => [name!, { light: light!, dark: dark! }]));

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const share = parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function ratio(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

const surfaces = ['bg', 'surface', 'raised', 'selected'];
const texts = ['text', 'text-2', 'text-3', 'accent', 'ok', 'warn', 'err', 'seed'];
const pairs: [string, string, number][] = [
  ...texts.flatMap((text) => surfaces.map((surface): [string, string, number] => [text, surface, 4.5])),
  ...['ok', 'warn', 'err', 'seed'].flatMap((state): [string, string, number][] => [[state, `${state}-tint`, 4.5], ['text', `${state}-tint`, 4.5], ['text-2', `${state}-tint`, 4.5]]),
  ['on-accent', 'accent', 4.5],
  ['on-err', 'err', 4.5],
  ['bg', 'text', 4.5],
  ...surfaces.map((surface): [string, string, number] => ['control', surface, 3]),
  ...['accent', 'ok', 'warn', 'err', 'seed'].map((fill): [string, string, number] => [fill, 'track', 3]),
];

describe.each(['light', 'dark'] as const)('in %s', (theme) => {
  it.each(pairs)('%s on %s is at least %d', (front, back, least) => {
    const [a, b] = [tokens.get(front), tokens.get(back)];
    expect(a && b, `${front} or ${back} is no token`).toBeTruthy();
    expect(ratio(a![theme], b![theme])).toBeGreaterThanOrEqual(least);
  });
});
