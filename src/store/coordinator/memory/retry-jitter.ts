const largestJitter = 0.1;
/** Clients that retry by themselves ignore a longer `retry-after`. */
const longestHonouredMs = 60_000;

/**
 * A wait made longer at random, so that callers refused together do not come back together. Never
 * shorter, since they would be refused again, and not beyond a minute unless the wait itself is.
 */
export function withJitter(waitMs: number | undefined, random: () => number): number | undefined {
  if (waitMs === undefined) return undefined;
  const jitteredMs = waitMs * (1 + largestJitter * random());
  return Math.ceil(Math.max(waitMs, Math.min(jitteredMs, longestHonouredMs)));
}
