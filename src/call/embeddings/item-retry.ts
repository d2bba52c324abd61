import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";

/** Tries of one part of a call at one target, the first included. */
const mostTries = 4;
const firstBackoffMs = 100;
const longestWaitMs = 2_000;

/** What passes by itself in a moment; anything else is for `decideRetry` to judge. */
const passingKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "throttled",
  "overloaded",
  "connection-lost",
]);

/**
 * How long one part of a call waits, in milliseconds, before it goes to the same target again;
 * undefined when it should not. Full jitter on top of what the upstream asked for, so that parts
 * which were refused together do not come back together. `random` is in [0, 1).
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
