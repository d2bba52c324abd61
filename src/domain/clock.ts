/** The source of time; tests and simulations pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. May jump. */
  now(): number;
  /** Milliseconds from an arbitrary start. Never goes backwards. */
  monotonic(): number;
  /** Runs something once after a delay; soon if it is below 0. Returns a function that cancels it. */
  schedule(run: () => void, delayMs: number): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(run, delayMs) {
    // The runtime warns of a delay below 0, on the standard error of the log.
    const timer = setTimeout(run, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};
