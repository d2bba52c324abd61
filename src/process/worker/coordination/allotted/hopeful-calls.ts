import type { Clock } from "../../../../domain/clock.ts";

/** Calls that wait for a moment for places that other processes give back. */
export class HopefulCalls {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /** Resolves with whether there is room, at the latest after `waitMs`. */
  wait(hasRoom: () => boolean, waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isThere: boolean): void => {
        cancel();
        this.#waiting.delete(look);
        resolve(isThere);
      };
      const look = (): void => {
        if (hasRoom()) end(true);
      };
      const cancel = this.#clock.schedule(() => end(false), waitMs);
      this.#waiting.add(look);
    });
  }

  /** There may be room. */
  look(): void {
    for (const look of this.#waiting) look();
  }
}
