import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";

/** What the end of an attempt tells of its target. */
export type Evidence = "life" | "failure" | "neither";

/** What a failure tells of its target: whether it is broken. */
export function evidenceOf({ kind, isOwn }: UpstreamFailureDetails): Evidence {
  if (isOwn === true) return "neither";
  switch (kind) {
    case "overloaded":
    case "unavailable":
    case "connect-failed":
    case "timed-out":
    case "connection-lost":
    case "broken-answer":
    case "bad-credential":
    case "unknown-model":
      return "failure";
    // A quota is no fault: the target pauses for it instead.
    case "throttled":
    case "unfit-answer":
    case "unsupported":
    case "context-overflow":
    case "invalid-request":
    case "content-refused":
      return "life";
    // The same attempt goes on with a fresh credential, and that one tells.
    case "stale-credential":
      return "neither";
  }
}

/**
 * Whether a failure says that the target has too much to do. A quota does not: it is for a minute.
 * Neither does silence after the first event: the target had taken the request.
 */
export function isOverload({ kind, isOwn }: UpstreamFailureDetails, isAnswered: boolean): boolean {
  if (isOwn === true) return false;
  return kind === "overloaded" || (kind === "timed-out" && !isAnswered);
}
