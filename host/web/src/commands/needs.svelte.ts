// Everything that waits for a person, as one list.
import { failureKinds, type FailureKind, type PendingCaptureDto, type PluginDto, type SelectionDto } from '../rpc/rpc';
import { Flag, Status } from '../rpc/row';
import { session } from './session.svelte';
import { tasks } from './tasks.svelte';

export type Need =
  | { kind: 'capture'; capture: PendingCaptureDto }
  | { kind: 'choice'; selection: SelectionDto; name: string }
  | { kind: 'consent'; plugin: PluginDto }
  | { kind: 'pairing' }
  | { kind: 'login'; ids: string[] }
  | { kind: 'failed'; cause: FailureKind; ids: string[]; names: string[] };

/** The first failures of a kind stand for all of them. */
const NAMES = 3;

function collect(): Need[] {
  const { slices, store } = session;
  const c = store.columns;
  const needs: Need[] = [];
  for (const capture of slices.pendingCaptures) needs.push({ kind: 'capture', capture });
  for (const selection of slices.pendingSelections) {
    const slot = store.slot(selection.taskId);
    if (slot !== undefined) needs.push({ kind: 'choice', selection, name: c.names[slot]! });
  }
  for (let count = slices.linkPairingRequests.length; count > 0; count--) needs.push({ kind: 'pairing' });
  for (const plugin of slices.plugins) if (plugin.pending || plugin.loadStatus === 'PendingConsent') needs.push({ kind: 'consent', plugin });
  const logins: string[] = [];
  const failed = new Map<number, number[]>();
  for (let slot = 0; slot < c.length; slot++) {
    if (c.ids[slot] === '') continue;
    if (c.flags[slot]! & Flag.loginNeed && c.status[slot] !== Status.completed) logins.push(c.ids[slot]!);
    else if (c.status[slot] === Status.error) failed.set(c.error[slot]!, [...(failed.get(c.error[slot]!) ?? []), slot]);
  }
  if (logins.length > 0) needs.push({ kind: 'login', ids: logins });
  for (const [error, slots] of failed) {
    const cause = failureKinds[error - 1] ?? 'internal';
    needs.push({ kind: 'failed', cause, ids: slots.map((slot) => c.ids[slot]!), names: slots.slice(0, NAMES).map((slot) => c.names[slot]!) });
  }
  return needs;
}

class Needs {
  readonly all: readonly Need[] = $derived.by(() => {
    // Facets are counted again when a task changes; samples do not matter here.
    void tasks.facets;
    return collect();
  });
}

export const needs = new Needs();
