import type { Clock } from "../domain/clock.ts";

export interface PaceOptions {
  /** 0: as fast as the caller reads. */
  readonly tokensPerSecond: number;
  readonly firstTokenDelayMs: number;
}

/** When each token of an answer is due, counted from the arrival of the call. */
export class Pace {
  readonly #options: PaceOptions;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #tokens = 0;

  constructor(options: PaceOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#startedAtMs = clock.monotonic();
  }

  /** The delay before the next write, which contains this many tokens. */
  delayMs(tokens: number): number {
    this.#tokens += tokens;
    const { tokensPerSecond, firstTokenDelayMs } = this.#options;
    if (tokensPerSecond === 0 && firstTokenDelayMs === 0) return 0;
    const writingMs = tokensPerSecond === 0 ? 0 : (this.#tokens * 1000) / tokensPerSecond;
    const dueAtMs = this.#startedAtMs + firstTokenDelayMs + writingMs;
    return Math.max(0, dueAtMs - this.#clock.monotonic());
  }
}
