/** A request that is run by one process at a time. */
export interface ClaimedRequest {
  readonly id: string;
  /** Equal for equal requests. */
  readonly requestDigest: string;
}

/** A claim, as its owner reports it to a new coordinator. */
export interface HeldClaim extends ClaimedRequest {
  /** The request has ended, and its answer waits in the owner's memory. */
  readonly isUnsaved: boolean;
}

/**
 * `owner`: the asker may run the request until it releases the claim; nobody has run it since the
 * claim was made. `reused`: a different request runs under this id. `unsaved`: another owner has an
 * answer that it cannot store at the moment. `ended`: the wait for another owner is over; look for
 * its answer, then claim again.
 */
export type ClaimDecision = "owner" | "reused" | "unsaved" | "ended";

/** The right to run a request, as one process claims it. Every decision is one round trip. */
export interface Joins {
  /** Rejects with `StorageUnavailable` when nobody can decide. */
  claim(request: ClaimedRequest): ClaimDecision | Promise<ClaimDecision>;
  /** Gives a claim back, or ends the wait for it. */
  release(id: string): void;
  /** The owner keeps the claim for an answer that is not stored. */
  unsaved(id: string): void;
}
