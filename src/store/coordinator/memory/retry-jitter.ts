const largestJitter = 0.1;
/** Clients that retry by themselves ignore a longer `retry-after`. */
const longestHonouredMs = 60_000;

/**
 * Adds jitter to a wait, so that callers refused together do not retry together. Never shortens it,
 * and never lengthens it beyond a minute.
 */
export function withJitter(waitMs: number | undefined, random: () => number): number | undefined {
  if (waitMs === undefined) return undefined;
  const jitteredMs = waitMs * (1 + largestJitter * random());
  return Math.ceil(Math.max(waitMs, Math.min(jitteredMs, longestHonouredMs)));
}
