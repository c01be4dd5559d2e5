// The last points of a rate: fixed memory, the oldest goes.

export class Ring {
  readonly #times: Float64Array;
  readonly #values: Float64Array;
  #next = 0;
  length = 0;

  constructor(readonly size: number) {
    this.#times = new Float64Array(size);
    this.#values = new Float64Array(size);
  }

  /** A point of the same second replaces the one before. */
  push(time: number, value: number): void {
    const last = (this.#next + this.size - 1) % this.size;
    if (this.length > 0 && Math.floor(this.#times[last]! / 1000) === Math.floor(time / 1000)) {
      this.#values[last] = value;
      return;
    }
    this.#times[this.#next] = time;
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % this.size;
    this.length = Math.min(this.length + 1, this.size);
  }

  /** Oldest first, from a time on. */
  points(from: number): { time: number; value: number }[] {
    const found = [];
    for (let at = 0; at < this.length; at++) {
      const place = (this.#next + this.size - this.length + at) % this.size;
      if (this.#times[place]! >= from) found.push({ time: this.#times[place]!, value: this.#values[place]! });
    }
    return found;
  }
}
