/**
 * Resolves in the next turn of the event loop. Work on large data is done in parts with this in
 * between, so that other requests are served meanwhile.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Data up to this size is worked on at once: what that takes is about a millisecond. */
export const oneTurnBytes = 64 * 1024;
