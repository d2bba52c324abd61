import type { UpstreamFailureKind } from "../domain/upstream-failure.ts";

/** What to do after a failed attempt, while nothing has reached the caller yet. */
export type RetryDecision = "same-target" | "next-target" | "give-up";

/** A pure rule: what failed, and how often this target was tried. */
export function decideRetry(kind: UpstreamFailureKind, triesAtTarget: number): RetryDecision {
  switch (kind) {
    case "stale-credential":
    // Most often an idle connection that the upstream closed while the request was on its way.
    case "connection-lost":
      return triesAtTarget < 2 ? "same-target" : "next-target";
    case "throttled":
    case "overloaded":
    case "unavailable":
    case "connect-failed":
    case "timed-out":
    case "broken-answer":
    case "bad-credential":
    case "unknown-model":
    case "unsupported":
      return "next-target";
    case "context-overflow":
    case "invalid-request":
    case "content-refused":
      return "give-up";
  }
}
