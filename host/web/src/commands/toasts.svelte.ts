// Short notes on what is over: at most three, six seconds each, longer while the pointer or the focus is on them.

export interface Toast {
  id: number;
  text: string;
  kind: 'plain' | 'error';
  action: { label: string; run: () => void } | null;
  /** Called when it goes without its action. */
  gone: (() => void) | null;
}

const SECONDS = 6;
const MOST = 3;

class Toasts {
  all = $state.raw<readonly Toast[]>([]);
  #next = 1;
  #timers = new Map<number, { timer: ReturnType<typeof setTimeout>; seconds: number }>();

  show(text: string, more: Partial<Pick<Toast, 'kind' | 'action' | 'gone'>> & { seconds?: number } = {}): number {
    const toast: Toast = { id: this.#next++, text, kind: more.kind ?? 'plain', action: more.action ?? null, gone: more.gone ?? null };
    this.all = [...this.all, toast];
    while (this.all.length > MOST) this.close(this.all[0]!.id);
    this.#wait(toast.id, more.seconds ?? SECONDS);
    return toast.id;
  }

  error(error: unknown): void {
    this.show(error instanceof Error ? error.message : String(error), { kind: 'error' });
  }

  #wait(id: number, seconds: number): void {
    this.#timers.set(id, { timer: setTimeout(() => this.close(id), seconds * 1000), seconds });
  }

  hold(): void {
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
  }

  release(): void {
    for (const [id, { timer, seconds }] of this.#timers) {
      clearTimeout(timer);
      this.#wait(id, seconds);
    }
  }

  act(id: number): void {
    const toast = this.all.find((one) => one.id === id);
    this.#drop(id);
    toast?.action?.run();
  }

  close(id: number): void {
    const toast = this.all.find((one) => one.id === id);
    this.#drop(id);
    toast?.gone?.();
  }

  #drop(id: number): void {
    clearTimeout(this.#timers.get(id)?.timer);
    this.#timers.delete(id);
    this.all = this.all.filter((one) => one.id !== id);
  }
}

export const toasts = new Toasts();
