// What the strip shows: for each pixel how much of it is there, and whether bytes flow into it.

export interface Span {
  /** From 0 to 1 of the file. */
  from: number;
  to: number;
  isActive: boolean;
}

/** The parts that are there. Segments are four numbers each: start, end, downloaded bytes, active. */
export function spans(segments: Float64Array | undefined, done: number, total: number, isRunning: boolean): Span[] {
  if (total <= 0) return [];
  if (!segments || segments.length === 0) {
    return done > 0 ? [{ from: 0, to: Math.min(1, done / total), isActive: isRunning }] : [];
  }
  const found: Span[] = [];
  for (let at = 0; at < segments.length; at += 4) {
    const have = segments[at + 2]!;
    if (have <= 0) continue;
    const from = segments[at]! / total;
    const to = Math.min(1, (segments[at]! + have) / total);
    const isActive = segments[at + 3] === 1;
    const last = found.at(-1);
    if (last && last.isActive === isActive && from - last.to < 1e-9) last.to = to;
    else found.push({ from, to, isActive });
  }
  return found;
}

/** Paints spans into a canvas of `width` × `height` device pixels; below a pixel they are merged. */
export function paint(
  context: CanvasRenderingContext2D,
  parts: readonly Span[],
  width: number,
  height: number,
  colours: { track: string; done: string; active: string },
): void {
  context.fillStyle = colours.track;
  context.fillRect(0, 0, width, height);
  for (const isActive of [false, true]) {
    context.fillStyle = isActive ? colours.active : colours.done;
    let from = -1;
    let to = -1;
    for (const part of parts) {
      if (part.isActive !== isActive) continue;
      const start = Math.floor(part.from * width);
      const end = Math.max(start + 1, Math.round(part.to * width));
      if (start <= to) {
        to = Math.max(to, end);
        continue;
      }
      if (from >= 0) context.fillRect(from, 0, to - from, height);
      [from, to] = [start, end];
    }
    if (from >= 0) context.fillRect(from, 0, to - from, height);
  }
}
