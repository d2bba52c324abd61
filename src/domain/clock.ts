/** The source of time; tests and simulations pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. May jump. */
  now(): number;
  /** Milliseconds from an arbitrary start. Never goes backwards. */
  monotonic(): number;
  /** Runs something once after a delay. Returns a function that cancels it. */
  schedule(run: () => void, delayMs: number): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(run, delayMs) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
