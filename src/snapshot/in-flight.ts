import type { Clock } from "../domain/clock.ts";

/** How somebody waits for a place. */
export interface PatientEntry {
  readonly signal: AbortSignal;
  readonly patienceMs: number;
  readonly clock: Pick<Clock, "schedule">;
}

/** Counts what runs at once, up to a limit that a reload may change. */
export class InFlight {
  #limit: number;
  #count = 0;
  /** What lets in those who wait, longest first. */
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#letIn();
  }

  get count(): number {
    return this.#count;
  }

  get free(): number {
    return Math.max(0, this.limit - this.#count);
  }

  /** Takes a place; false when there is none. Whoever took one must leave it once. */
  tryEnter(): boolean {
    if (this.free === 0) return false;
    this.#count += 1;
    return true;
  }

  /** Takes a place though there may be none. */
  enterAnyway(): void {
    this.#count += 1;
  }

  /**
   * As `tryEnter`, but waits for a place; false when the time is over or the signal has fired. A
   * place that is given back goes to who waits longest, so that newcomers cannot snatch it.
   */
  enter({ signal, patienceMs, clock }: PatientEntry): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.tryEnter()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (hasPlace: boolean): void => {
        cancel();
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(letIn);
        resolve(hasPlace);
      };
      const letIn = (): void => end(true);
      const giveUp = (): void => end(false);
      const cancel = clock.schedule(giveUp, patienceMs);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(letIn);
    });
  }

  leave(): void {
    this.#count -= 1;
    this.#letIn();
  }

  #letIn(): void {
    for (const letIn of this.#waiting) {
      if (!this.tryEnter()) return;
      letIn();
    }
  }
}
