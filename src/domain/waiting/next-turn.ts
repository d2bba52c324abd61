/**
 * Resolves in the next turn of the event loop. Awaited between the parts of work on large data, so
 * that other requests are served meanwhile.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Data up to this size is processed in one turn, which takes about a millisecond. */
export const oneTurnBytes = 64 * 1024;
