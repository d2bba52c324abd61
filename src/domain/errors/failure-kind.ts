/** Kinds of upstream failures, independent of the protocol. */
export const upstreamFailureKinds = [
  /** The quota of the operator's account is used up. */
  "throttled",
  /** The provider has no capacity now. */
  "overloaded",
  /** 5xx, or any answer that cannot be understood. */
  "unavailable",
  "connect-failed",
  "timed-out",
  /** The connection broke before any answer; the upstream may have processed the request. */
  "connection-lost",
  /** The answer began and then stopped or became invalid. */
  "broken-answer",
  /** The answer exceeds a limit of the gateway. */
  "answer-too-large",
  /** The answer is complete but not in the form the caller requested. */
  "unfit-answer",
  /** The upstream refused the gateway's credential. */
  "bad-credential",
  /** The account at the provider has no credit or is closed; only its holder can change that. */
  "account-blocked",
  /** The credential was refused for its age; the next attempt gets a fresh one. */
  "stale-credential",
  /** The upstream does not know the target's model identifier. */
  "unknown-model",
  "context-overflow",
  /** The target does not support the request; another may. `param` names the field. */
  "unsupported",
  /** The upstream refused the request. */
  "invalid-request",
  /** The upstream refused the content of the request. */
  "content-refused",
] as const;

export type UpstreamFailureKind = (typeof upstreamFailureKinds)[number];
