// The version of the service that this page belongs to: that of the workspace.
import { readFileSync } from 'node:fs';

export function version() {
  const manifest = readFileSync(new URL('../../../Cargo.toml', import.meta.url), 'utf8');
  const found = /\[workspace\.package\][^[]*?\nversion\s*=\s*"([^"]+)"/.exec(manifest);
  if (!found) throw new Error('Cargo.toml has no version in [workspace.package]');
  return found[1];
}
