import { type Clock, systemClock } from "../../src/domain/clock.ts";

/** Goes as the clock of the machine does, from a time that the test sets. */
export class ShiftedClock implements Clock {
  readonly #skewMs: number;
  #shiftMs = 0;

  constructor(at: number, skewMs = 0) {
    this.#skewMs = skewMs;
    this.set(at);
  }

  /** Forward or back, as an administrator or NTP would. */
  set(at: number): void {
    this.#shiftMs = at + this.#skewMs - systemClock.now();
  }

  now(): number {
    return Math.round(systemClock.now() + this.#shiftMs);
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  schedule(run: () => void, delayMs: number): () => void {
    return systemClock.schedule(run, delayMs);
  }
}
