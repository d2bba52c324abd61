/** What went wrong at an upstream, in terms that do not depend on its protocol. */
export type UpstreamFailureKind =
  /** The provider's quota for the operator's account is used up. */
  | "throttled"
  /** The provider has no capacity now. */
  | "overloaded"
  /** 5xx, or any answer that makes no sense. */
  | "unavailable"
  | "connect-failed"
  | "timed-out"
  /** The connection broke before any answer; the upstream may have done the work. */
  | "connection-lost"
  /** The answer began and then stopped, or turned into something that is not an answer. */
  | "broken-answer"
  /** The answer is whole, and has not the form that the caller asked for. */
  | "unfit-answer"
  /** The credential that Sluice holds is refused. */
  | "bad-credential"
  /** The credential was refused for its age; the next try brings a fresh one. */
  | "stale-credential"
  /** The target's model identifier is unknown to the upstream. */
  | "unknown-model"
  | "context-overflow"
  /** The target cannot do what the caller asked; another target may. `param` names the field. */
  | "unsupported"
  /** The upstream refused what the caller sent. */
  | "invalid-request"
  /** The upstream refused the content of what the caller sent. */
  | "content-refused";
