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
