import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";

type Evidence = "life" | "failure" | "refusal" | "neither";

/** Whether a failure shows a broken target, or a provider that refuses requests for some time. */
export function evidenceOf({ kind, isOwn, retryAfterMs }: UpstreamFailureDetails): Evidence {
  if (isOwn === true) return "neither";
  switch (kind) {
    // A quota is not a fault.
    case "throttled":
      return "refusal";
    // After any other failure, a Retry-After says when to repeat this request, not who may call.
    case "overloaded":
      return retryAfterMs === undefined ? "failure" : "refusal";
    case "unavailable":
    case "connect-failed":
    case "timed-out":
    case "connection-lost":
    case "broken-answer":
    case "bad-credential":
    case "account-blocked":
    case "unknown-model":
      return "failure";
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
