// What floats above the page, on the browser's own top layer.

/** A point of the pointer, or an element that it stands beside. */
export type Place = { x: number; y: number } | Element;

const GAP = 4;
const MARGIN = 8;

/** Puts a popover that is shown at a point or below an element, above it where there is more room, and within the window. */
export function placePopover(node: HTMLElement, at: Place, alignsEnd = false): void {
  const size = node.getBoundingClientRect();
  const isRtl = getComputedStyle(node).direction === 'rtl';
  let [x, y] = [0, 0];
  if (at instanceof Element) {
    const box = at.getBoundingClientRect();
    x = alignsEnd !== isRtl ? box.right - size.width : box.left;
    y = box.bottom + GAP;
    if (y + size.height > innerHeight - MARGIN && box.top > innerHeight - box.bottom) y = box.top - size.height - GAP;
  } else {
    x = isRtl ? at.x - size.width : at.x;
    y = at.y;
  }
  node.style.left = `${Math.max(MARGIN, Math.min(x, innerWidth - size.width - MARGIN))}px`;
  node.style.top = `${Math.max(MARGIN, Math.min(y, innerHeight - size.height - MARGIN))}px`;
}

function hasLostFocus(node: Element): boolean {
  const active = document.activeElement;
  return active === null || active === document.body || node.contains(active);
}

/** The function it returns gives the focus back to what had it, unless something else took it. */
export function keepFocus(node: Element): () => void {
  const before = document.activeElement;
  return () => {
    if (before instanceof HTMLElement && before.isConnected && hasLostFocus(node)) before.focus({ preventScroll: true });
  };
}

/** Shows a dialog as long as it is in the document. The focus goes to the field that is marked, if one is. */
export function modal(node: HTMLDialogElement) {
  const giveBack = keepFocus(node);
  node.showModal();
  const wanted = node.querySelector<HTMLElement>('[data-autofocus]');
  wanted?.focus();
  if (wanted instanceof HTMLInputElement) wanted.select();
  return { destroy: giveBack };
}

/** Whether a press was beside a dialog. Its backdrop belongs to it, so only the place tells. */
export function isBeside(event: MouseEvent & { currentTarget: Element }): boolean {
  if (event.target !== event.currentTarget) return false;
  const box = event.currentTarget.getBoundingClientRect();
  return event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom;
}
