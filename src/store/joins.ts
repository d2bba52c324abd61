/** A request that is run by one process at a time. */
export interface ClaimedRequest {
  readonly id: string;
  /** Equal for equal requests. */
  readonly requestDigest: string;
}

/**
 * `owner`: the asker may run the request until it releases it; nobody else could since it asked.
 * `reused`: a different request runs under the id. `ended`: the asker has waited for another owner;
 * it looks for that one's answer, and claims again.
 */
export type ClaimDecision = "owner" | "reused" | "ended";

/** The right to run a request, as one process asks for it. Every decision is one round trip. */
export interface Joins {
  /** Rejects with `StorageUnavailable` when nobody can decide. */
  claim(request: ClaimedRequest): ClaimDecision | Promise<ClaimDecision>;
  /** Gives a claim back, or ends the wait for it. */
  release(id: string): void;
}
