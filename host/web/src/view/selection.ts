// What is selected: a set of ids, an anchor for ranges, one active row. It survives filters, sorts and live changes.

export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly anchor: string | null;
  readonly active: string | null;
}

export const nothing: Selection = { ids: new Set(), anchor: null, active: null };

export function only(id: string): Selection {
  return { ids: new Set([id]), anchor: id, active: id };
}

export function toggled(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, anchor: id, active: id };
}

/** From the anchor to `id`, in the order that is shown. With `isAdded`, beside what is selected. */
export function ranged(selection: Selection, id: string, order: readonly string[], isAdded: boolean): Selection {
  const to = order.indexOf(id);
  const from = selection.anchor === null ? to : order.indexOf(selection.anchor);
  if (to < 0) return selection;
  if (from < 0) return only(id);
  const range = order.slice(Math.min(from, to), Math.max(from, to) + 1);
  return { ids: new Set(isAdded ? [...selection.ids, ...range] : range), anchor: selection.anchor ?? id, active: id };
}

/** The active row alone moves; the selection stays. */
export function moved(selection: Selection, id: string | null): Selection {
  return { ...selection, active: id };
}

/** Without ids that no longer exist. The active row goes to the neighbour that is given for it. */
export function without(selection: Selection, exists: (id: string) => boolean, neighbour: string | null): Selection {
  const isActiveGone = selection.active !== null && !exists(selection.active);
  const gone = [...selection.ids].filter((id) => !exists(id));
  const isAnchorGone = selection.anchor !== null && !exists(selection.anchor);
  if (gone.length === 0 && !isActiveGone && !isAnchorGone) return selection;
  const ids = new Set(selection.ids);
  for (const id of gone) ids.delete(id);
  return { ids, anchor: isAnchorGone ? null : selection.anchor, active: isActiveGone ? neighbour : selection.active };
}
