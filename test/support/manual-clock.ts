import { systemClock, type Clock } from "../../src/domain/clock.ts";

/** A clock that only the test moves. Scheduled functions wait for real time. */
export class ManualClock implements Clock {
  #wallMs: number;
  #monotonicMs: number;

  constructor(start: { wallMs?: number; monotonicMs?: number } = {}) {
    this.#wallMs = start.wallMs ?? Date.UTC(2026, 0, 1);
    this.#monotonicMs = start.monotonicMs ?? 0;
  }

  now(): number {
    return this.#wallMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  schedule(run: () => void, delayMs: number): () => void {
    return systemClock.schedule(run, delayMs);
  }

  /** Advances both clocks. */
  advance(durationMs: number): void {
    if (!(durationMs >= 0)) throw new RangeError("time does not run backwards");
    this.#wallMs += durationMs;
    this.#monotonicMs += durationMs;
  }

  /** Sets the wall clock forward or back, as an administrator or NTP would. */
  jumpWall(differenceMs: number): void {
    this.#wallMs += differenceMs;
  }
}
