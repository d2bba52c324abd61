/** Clocks are finer than what anybody means: an answer has tenths of a millisecond. */
export function roundedMs(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}
