// When a queue runs in a week. A start and a stop are edges that act on each chosen day; at the same minute the stop wins.
// So a queue that starts on Saturday alone at 23:00 and stops at 06:00 runs until 06:00 of the next Saturday.

export const DAY = 1440;
const WEEK = 7 * DAY;
export const EVERY_DAY = 127;
/** Minutes between two places of a handle. */
export const STEP = 5;

/** `HH:MM` in minutes; null for none. */
export function minutes(text: string): number | null {
  const found = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text);
  return found ? Number(found[1]) * 60 + Number(found[2]) : null;
}

export function clock(at: number): string {
  const inDay = ((at % DAY) + DAY) % DAY;
  return `${String(Math.floor(inDay / 60)).padStart(2, '0')}:${String(inDay % 60).padStart(2, '0')}`;
}

/** The nearest place of a handle; a day ends before midnight. */
export function snap(at: number): number {
  return Math.min(DAY - STEP, Math.max(0, Math.round(at / STEP) * STEP));
}

export function has(days: number, day: number): boolean {
  return ((days === 0 ? EVERY_DAY : days) & (1 << day)) !== 0;
}

/** With a day switched; never without any, because none means every day. */
export function toggle(days: number, day: number): number {
  const next = (days === 0 ? EVERY_DAY : days) ^ (1 << day);
  return next === 0 ? days : next;
}

/** For each day, Monday first, from when to when it runs, in minutes of that day. */
export function runs(start: number | null, stop: number | null, days: number): [number, number][][] {
  const edges: { at: number; on: boolean }[] = [];
  for (let day = 0; day < 7; day++) {
    if (!has(days, day)) continue;
    if (start !== null && start !== stop) edges.push({ at: day * DAY + start, on: true });
    if (stop !== null) edges.push({ at: day * DAY + stop, on: false });
  }
  edges.sort((a, b) => a.at - b.at);
  const found: [number, number][][] = Array.from({ length: 7 }, () => []);
  edges.forEach((edge, index) => {
    if (!edge.on) return;
    const next = edges[(index + 1) % edges.length]!;
    const length = (next.at - edge.at + WEEK) % WEEK || WEEK;
    for (let from = edge.at; from < edge.at + length; ) {
      const to = Math.min(edge.at + length, (Math.floor(from / DAY) + 1) * DAY);
      const midnight = Math.floor(from / DAY) * DAY;
      found[Math.floor(from / DAY) % 7]!.push([from - midnight, to - midnight]);
      from = to;
    }
  });
  return found;
}
