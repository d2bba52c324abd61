import type { UpstreamFailureDetails } from "../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";

export interface RetryFacts {
  readonly failure: UpstreamFailureDetails;
  /** Attempts of this call at the failed target, including the failed one. */
  readonly triesAtTarget: number;
  /** Attempts of this call at all targets, including the failed one. */
  readonly attempts: number;
  readonly attemptLimit: number;
  /** A target not tried since the last failure that may succeed where this one failed. */
  readonly hasOtherTarget: boolean;
  /** Another target, tried or not, is in service: no need to honour this one's Retry-After. */
  readonly isOtherInService: boolean;
  readonly isCallerGone: boolean;
  /** Time to the call's deadline; Infinity without one. */
  readonly remainingMs: number;
  /** Takes one retry from the budget of the failed target; called last. */
  readonly takeBudget: () => boolean;
  readonly firstBackoffMs: number;
  readonly longestBackoffMs: number;
  /** Returns numbers in [0, 1). */
  readonly random: () => number;
}

export type GiveUpReason =
  | "caller-gone"
  /** Another attempt would fail the same way. */
  | "cannot-mend"
  | "attempt-limit"
  /** Every suitable target was tried, and a wait would not help. */
  | "no-other-target"
  /** The Retry-After is longer than the longest backoff. */
  | "asked-to-wait"
  | "deadline"
  | "budget";

export type RetryDecision =
  | { readonly action: "give-up"; readonly because: GiveUpReason }
  | {
      readonly action: "retry";
      /** `same-target` with a wait: every target was tried, and any may be retried. */
      readonly where: "same-target" | "next-target";
      readonly waitMs: number;
    };

/**
 * Decides what to do after a failed attempt. The next target is tried at once; its own budget is
 * checked when that attempt begins. Has no effect except through `takeBudget`.
 */
export function decideRetry(facts: RetryFacts): RetryDecision {
  if (facts.isCallerGone) return giveUp("caller-gone");
  const { kind } = facts.failure;
  switch (kind) {
    case "context-overflow":
      return facts.hasOtherTarget ? again({ facts, where: "next-target" }) : giveUp("cannot-mend");
    case "invalid-request":
    case "content-refused":
    case "answer-too-large":
      return giveUp("cannot-mend");
    case "stale-credential":
      if (facts.triesAtTarget < 2) return again({ facts, where: "same-target", isFree: true });
      return nextTarget(facts);
    case "unsupported":
    case "unknown-model":
    case "bad-credential":
    case "account-blocked":
      return nextTarget(facts);
    case "unfit-answer":
      // Models answer differently each time, but a model that fails twice will likely fail again.
      if (facts.hasOtherTarget) return again({ facts, where: "next-target" });
      if (facts.triesAtTarget < 2) return again({ facts, where: "same-target" });
      return giveUp("cannot-mend");
    case "throttled":
    case "overloaded":
    case "unavailable":
    case "connect-failed":
    case "connection-lost":
    case "timed-out":
    case "broken-answer":
      return facts.hasOtherTarget ? again({ facts, where: "next-target" }) : afterBackoff(facts);
  }
}

/** Whether the provider may bill the failed attempt: it was sent and may have been processed. */
export function mayBeBilled(kind: UpstreamFailureKind, hasFirstEvent: boolean): boolean {
  return hasFirstEvent || workedKinds.has(kind);
}

const workedKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "connection-lost",
  "timed-out",
  "broken-answer",
  "answer-too-large",
  "unfit-answer",
]);

/** Only another target may help, not a wait. */
function nextTarget(facts: RetryFacts): RetryDecision {
  if (!facts.hasOtherTarget) return giveUp("no-other-target");
  return again({ facts, where: "next-target" });
}

/** Exponential backoff, at least half fixed and the rest random, so that calls spread over time. */
function afterBackoff(facts: RetryFacts): RetryDecision {
  const askedMs = facts.isOtherInService ? 0 : (facts.failure.retryAfterMs ?? 0);
  // The caller gets the provider's Retry-After instead.
  if (askedMs > facts.longestBackoffMs) return giveUp("asked-to-wait");
  const growing = facts.firstBackoffMs * 2 ** (facts.triesAtTarget - 1);
  const mostMs = Math.min(facts.longestBackoffMs, growing);
  const waitMs = askedMs + mostMs * (0.5 + facts.random() / 2);
  return again({ facts, where: "same-target", waitMs });
}

interface Again {
  readonly facts: RetryFacts;
  readonly where: "same-target" | "next-target";
  readonly waitMs?: number;
  /** The target did no work, so a retry adds no load. */
  readonly isFree?: boolean;
}

function again({ facts, where, waitMs = 0, isFree = false }: Again): RetryDecision {
  if (facts.attempts >= facts.attemptLimit) return giveUp("attempt-limit");
  if (waitMs >= facts.remainingMs) return giveUp("deadline");
  const isRepeated = where === "same-target" && !isFree;
  const isPaid = !isRepeated || facts.takeBudget();
  return isPaid ? { action: "retry", where, waitMs } : giveUp("budget");
}

function giveUp(because: GiveUpReason): RetryDecision {
  return { action: "give-up", because };
}
