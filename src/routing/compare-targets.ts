import type { TargetView } from "./target-view.ts";

/** Smaller differences are chance, and do not override the weights. */
const clearShare = 0.25;
const clearFactor = 2;
/** Smaller delays go unnoticed. */
const clearDelayMs = 50;

/** Why the first target is clearly worse than the other; undefined when the weights decide. */
export function clearlyWorse(one: TargetView, other: TargetView): string | undefined {
  if (one.failureShare - other.failureShare > clearShare) return "fails more often";
  // Failures can be fast, which must not make a target look better.
  if (other.failureShare - one.failureShare > clearShare) return undefined;
  if (isFull(one) && !isFull(other)) return "at its limit";
  if (isFull(other)) return undefined;
  return isSlower(one, other) ? "slower" : undefined;
}

function isFull({ inFlight, limit }: TargetView): boolean {
  return inFlight + 1 > limit;
}

function isSlower(one: TargetView, other: TargetView): boolean {
  if (one.firstEventMs === undefined || other.firstEventMs === undefined) return false;
  const isFar = one.firstEventMs - other.firstEventMs > clearDelayMs;
  return isFar && one.firstEventMs > other.firstEventMs * clearFactor;
}
