// The rates of running tasks as this page has seen them, for the plot.
import { Ring } from '../view/ring';
import { session } from './session.svelte';

const POINTS = 600;
const MOST_TASKS = 256;

class Rates {
  #rings = new Map<string, Ring>();

  constructor() {
    session.onFrame((changes) => {
      const { columns } = session.store;
      const now = Date.now();
      if (changes.isAll) return;
      for (const slot of changes.samples) {
        const id = columns.ids[slot]!;
        let ring = this.#rings.get(id);
        if (!ring) {
          if (this.#rings.size >= MOST_TASKS) this.#rings.delete(this.#rings.keys().next().value!);
          this.#rings.set(id, (ring = new Ring(POINTS)));
        }
        ring.push(now, columns.down[slot]! || columns.up[slot]!);
      }
    });
  }

  of(id: string): Ring | undefined {
    return this.#rings.get(id);
  }
}

export const rates = new Rates();
