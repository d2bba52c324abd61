import type { Clock } from "../../src/domain/clock.ts";

/** Timers that fire only when the test advances the time. */
export class ManualTimers implements Pick<Clock, "schedule"> {
  #nowMs = 0;
  readonly #waiting = new Map<() => void, number>();

  schedule(run: () => void, delayMs: number): () => void {
    // A new object, so that one function may be scheduled twice.
    const once = (): void => run();
    this.#waiting.set(once, this.#nowMs + delayMs);
    return () => void this.#waiting.delete(once);
  }

  /** Fires due timers in order. */
  advance(durationMs: number): void {
    const end = this.#nowMs + durationMs;
    for (;;) {
      const [next] = [...this.#waiting].toSorted(([, one], [, other]) => one - other);
      if (next === undefined || next[1] > end) break;
      this.#nowMs = next[1];
      this.#waiting.delete(next[0]);
      next[0]();
    }
    this.#nowMs = end;
  }
}
