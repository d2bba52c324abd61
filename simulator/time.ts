/** The source of time; tests pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start. Never goes backwards. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

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

/** The longest delay that a timer of the runtime supports. */
const longestTimerMs = 2 ** 31 - 1;

/** Resolves after the time, or at once when the signal fires; it never rejects. */
export function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || milliseconds <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(
      () => {
        if (milliseconds !== Number.POSITIVE_INFINITY) end();
      },
      Math.min(milliseconds, longestTimerMs),
    );
    signal.addEventListener("abort", end, { once: true });
  });
}
