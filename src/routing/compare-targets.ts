import type { TargetView } from "./target-view.ts";

/** Differences below these are chance, and the weights hold. */
const clearShare = 0.25;
const clearFactor = 2;
/** Nobody feels less. */
const clearDelayMs = 50;

/** In what a target is clearly worse than another; undefined when the weights decide. */
export function clearlyWorse(one: TargetView, other: TargetView): string | undefined {
  if (one.failureShare - other.failureShare > clearShare) return "fails more often";
  // What fails is quick at times; that must not make it the better one.
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
