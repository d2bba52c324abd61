import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";

/** Limit on tries of one part of a call at one target. */
const mostTries = 4;
const firstBackoffMs = 100;
const longestWaitMs = 2_000;

/** Transient failures; all others are left to `decideRetry`. */
const passingKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "throttled",
  "overloaded",
  "connection-lost",
]);

/**
 * Time in milliseconds before one part of a call is retried at the same target; undefined for no
 * retry. Full jitter on top of the Retry-After, so that refused parts do not come back together.
 * `random` is in [0, 1).
 */
export function waitBeforeItemRetry(
  failure: UpstreamFailureDetails,
  tries: number,
  random: number,
): number | undefined {
  if (tries >= mostTries || !passingKinds.has(failure.kind)) return undefined;
  const asked = Math.min(failure.retryAfterMs ?? 0, longestWaitMs);
  const backoff = Math.min(firstBackoffMs * 2 ** (tries - 1), longestWaitMs - asked);
  return asked + random * backoff;
}
