import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";

/** What the end of an attempt shows about its target. */
export type Evidence = "life" | "failure" | "neither";

/** Whether a failure shows that its target is broken. */
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
    case "account-blocked":
    case "unknown-model":
      return "failure";
    // A quota is not a fault: the target pauses for it.
    case "throttled":
    case "answer-too-large":
    case "unfit-answer":
    case "unsupported":
    case "context-overflow":
    case "invalid-request":
    case "content-refused":
      return "life";
    // The same attempt is repeated with a fresh credential, which decides.
    case "stale-credential":
      return "neither";
  }
}

/**
 * Whether a failure shows that the target is overloaded. A quota does not: it lasts a minute. A
 * timeout after the first event does not either: the target had accepted the request.
 */
export function isOverload({ kind, isOwn }: UpstreamFailureDetails, isAnswered: boolean): boolean {
  if (isOwn === true) return false;
  return kind === "overloaded" || (kind === "timed-out" && !isAnswered);
}
