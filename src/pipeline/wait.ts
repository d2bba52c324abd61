/** Resolves after the time, or at once when the signal fires; it never rejects. */
export function wait(durationMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    signal.addEventListener("abort", end, { once: true });
  });
}
