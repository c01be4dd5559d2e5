// Numbers, sizes, times and names as text. Formatters are made once for each language.

export type Units = 'binary' | 'decimal';

const UNKNOWN = '–';

const names: Record<Units, readonly string[]> = {
  binary: ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'],
  decimal: ['B', 'kB', 'MB', 'GB', 'TB', 'PB'],
};

export class Formats {
  readonly #digits: Intl.NumberFormat[];
  readonly #count: Intl.NumberFormat;
  readonly #percent: Intl.NumberFormat;
  readonly #units = new Map<string, Intl.NumberFormat>();
  readonly #day: Intl.DateTimeFormat;
  readonly #time: Intl.DateTimeFormat;
  readonly #full: Intl.DateTimeFormat;
  readonly #relative: Intl.RelativeTimeFormat;
  readonly #list: Intl.ListFormat;

  constructor(
    readonly language: string,
    readonly units: Units = 'binary',
  ) {
    this.#digits = [0, 1, 2].map((digits) => new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }));
    this.#count = new Intl.NumberFormat(language);
    this.#percent = new Intl.NumberFormat(language, { style: 'percent' });
    this.#day = new Intl.DateTimeFormat(language, { dateStyle: 'medium' });
    this.#time = new Intl.DateTimeFormat(language, { timeStyle: 'short' });
    this.#full = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' });
    this.#relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });
    this.#list = new Intl.ListFormat(language, { type: 'conjunction' });
  }

  count(value: number): string {
    return this.#count.format(value);
  }

  /** Whole percent, rounded down: 100 % is said of what is complete only. */
  percent(share: number): string {
    return this.#percent.format(Math.floor(Math.min(1, Math.max(0, share)) * 100) / 100);
  }

  /** Three significant digits. */
  bytes(value: number | null): string {
    if (value === null || !Number.isFinite(value) || value < 0) return UNKNOWN;
    const step = this.units === 'binary' ? 1024 : 1000;
    let unit = 0;
    let rest = value;
    // 999.5 would be shown as 1000, so the next unit takes it.
    while (rest >= 999.5 && unit < names.binary.length - 1) {
      rest /= step;
      unit++;
    }
    const digits = unit === 0 || rest >= 99.95 ? 0 : rest >= 9.995 ? 1 : 2;
    return `${this.#digits[digits]!.format(rest)}\u00a0${names[this.units][unit]}`;
  }

  rate(bytesPerSecond: number | null): string {
    return bytesPerSecond === null ? UNKNOWN : `${this.bytes(bytesPerSecond)}/s`;
  }

  #unit(value: number, unit: string): string {
    let format = this.#units.get(unit);
    if (!format) {
      format = new Intl.NumberFormat(this.language, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 0 });
      this.#units.set(unit, format);
    }
    return format.format(value);
  }

  /** The two largest units: `1 h 3 min`. */
  duration(seconds: number | null): string {
    if (seconds === null || !Number.isFinite(seconds) || seconds < 0) return UNKNOWN;
    const whole = Math.ceil(seconds);
    if (whole < 60) return this.#unit(whole, 'second');
    if (whole < 3600) return this.#unit(Math.round(whole / 60), 'minute');
    const units: [number, string][] = [[86_400, 'day'], [3600, 'hour'], [60, 'minute']];
    const at = whole >= 86_400 ? 0 : 1;
    if (whole >= 86_400 * 100) return this.#unit(Math.round(whole / 86_400), 'day');
    const [large, largeUnit] = units[at]!;
    const [small, smallUnit] = units[at + 1]!;
    let first = Math.floor(whole / large);
    let second = Math.round((whole % large) / small);
    if (second === large / small) {
      first++;
      second = 0;
    }
    const parts = [this.#unit(first, largeUnit)];
    if (second > 0) parts.push(this.#unit(second, smallUnit));
    return parts.join(' ');
  }

  /** Today the time, else the day. In Unix seconds. */
  when(seconds: number, now: number): string {
    if (seconds <= 0) return UNKNOWN;
    const at = new Date(seconds * 1000);
    const today = new Date(now);
    return at.toDateString() === today.toDateString() ? this.#time.format(at) : this.#day.format(at);
  }

  moment(milliseconds: number): string {
    return this.#full.format(new Date(milliseconds));
  }

  time(milliseconds: number): string {
    return this.#time.format(new Date(milliseconds));
  }

  /** `in 5 minutes`, `3 days ago`. */
  relative(seconds: number): string {
    const steps: [number, Intl.RelativeTimeFormatUnit][] = [[86_400, 'day'], [3600, 'hour'], [60, 'minute']];
    for (const [size, unit] of steps) if (Math.abs(seconds) >= size) return this.#relative.format(Math.round(seconds / size), unit);
    return this.#relative.format(Math.round(seconds), 'second');
  }

  list(parts: readonly string[]): string {
    return this.#list.format(parts);
  }
}

/** `2M`, `500 KiB`, `1.5 GB` or `1048576` in bytes; null if it is none. */
export function parseBytes(text: string): number | null {
  const found = /^\s*(\d+(?:[.,]\d+)?)\s*([kmgt]?)(i?)(b?)(?:\/s)?\s*$/i.exec(text);
  if (!found) return null;
  const power = ['', 'k', 'm', 'g', 't'].indexOf(found[2]!.toLowerCase());
  // `KiB` and a bare `K` are 1024; `kB` is 1000.
  const step = found[3] !== '' || found[4] === '' ? 1024 : 1000;
  return Math.round(Number(found[1]!.replace(',', '.')) * step ** power);
}

/** Text of others as it may be shown: what changes the direction or is invisible becomes a marked code. */
export interface Piece {
  text: string;
  isMarked: boolean;
}

const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u;

export const MAX_SHOWN = 1000;

export function pieces(text: string): Piece[] {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
  if (!hidden.test(cut)) return [{ text: cut, isMarked: false }];
  const found: Piece[] = [];
  let plain = '';
  for (const char of cut) {
    // Joiners between letters are part of words in several scripts.
    const code = char.codePointAt(0)!;
    if (!hidden.test(char) || code === 0x200c || code === 0x200d) {
      plain += char;
      continue;
    }
    if (plain !== '') found.push({ text: plain, isMarked: false });
    plain = '';
    found.push({ text: `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, isMarked: true });
  }
  if (plain !== '') found.push({ text: plain, isMarked: false });
  return found;
}

/** The same as one line of plain text, for attributes and announcements. */
export function plain(text: string): string {
  return pieces(text).map((piece) => (piece.isMarked ? `[${piece.text}]` : piece.text)).join('');
}

/** A link as it may be opened: http and https only. */
export function openable(url: string): string | null {
  try {
    const parsed = new URL(url);
    return parsed.protocol === 'http:' || parsed.protocol === 'https:' ? parsed.href : null;
  } catch {
    return null;
  }
}
