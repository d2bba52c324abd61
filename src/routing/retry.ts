import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import type { UpstreamFailureDetails } from "../domain/errors/upstream-failure.ts";

/** What is known after an attempt that failed. */
export interface RetryFacts {
  readonly failure: UpstreamFailureDetails;
  /** Of this call at the target that failed, the failed one included. */
  readonly triesAtTarget: number;
  /** Of this call at all targets, the failed one included. */
  readonly attempts: number;
  readonly attemptLimit: number;
  /** One that was not tried since the last failure, and that may do better than the one that failed. */
  readonly hasOtherTarget: boolean;
  /** Another that is in service, tried or not: what this one asks for need not be waited for. */
  readonly isOtherInService: boolean;
  readonly isCallerGone: boolean;
  /** Whether the caller may have got something of an answer. */
  readonly hasFirstEvent: boolean;
  /** Until the call's own deadline; Infinity without one. */
  readonly remainingMs: number;
  /** Takes one retry from the budget of the target that failed; asked last. */
  readonly takeBudget: () => boolean;
  readonly firstBackoffMs: number;
  readonly longestBackoffMs: number;
  /** Gives numbers in [0, 1). */
  readonly random: () => number;
}

export type GiveUpReason =
  | "caller-gone"
  | "answer-began"
  /** Another try would fail alike. */
  | "cannot-mend"
  | "attempt-limit"
  /** Every target that could do it was tried, and the last cannot mend by waiting. */
  | "no-other-target"
  /** The provider asked for a longer wait than is waited. */
  | "asked-to-wait"
  | "deadline"
  | "budget";

export type RetryDecision =
  | { readonly action: "give-up"; readonly because: GiveUpReason }
  | {
      readonly action: "retry";
      /** `same-target` with a wait: every target was tried, and any may be tried again. */
      readonly where: "same-target" | "next-target";
      readonly waitMs: number;
    };

/**
 * What to do after a failed attempt. Another target is tried at once; whether it may be, where it
 * fails as well, is asked when the attempt begins. Nothing but `takeBudget` is changed by asking.
 */
export function decideRetry(facts: RetryFacts): RetryDecision {
  if (facts.isCallerGone) return giveUp("caller-gone");
  if (facts.hasFirstEvent) return giveUp("answer-began");
  const { kind } = facts.failure;
  switch (kind) {
    case "context-overflow":
      return facts.hasOtherTarget ? again({ facts, where: "next-target" }) : giveUp("cannot-mend");
    case "invalid-request":
    case "content-refused":
      return giveUp("cannot-mend");
    case "stale-credential":
      if (facts.triesAtTarget < 2) return again({ facts, where: "same-target", isFree: true });
      return elsewhere(facts);
    case "unsupported":
    case "unknown-model":
    case "bad-credential":
      return elsewhere(facts);
    case "connection-lost":
      // Most often an idle connection that the upstream closed while the request was on its way.
      if (facts.hasOtherTarget) return again({ facts, where: "next-target" });
      if (facts.triesAtTarget < 2) return again({ facts, where: "same-target" });
      return afterBackoff(facts);
    case "unfit-answer":
      // Models write otherwise each time; one that fails twice will most likely fail again.
      if (facts.hasOtherTarget) return again({ facts, where: "next-target" });
      if (facts.triesAtTarget < 2) return again({ facts, where: "same-target" });
      return giveUp("cannot-mend");
    case "throttled":
    case "overloaded":
    case "unavailable":
    case "connect-failed":
    case "timed-out":
    case "broken-answer":
      return facts.hasOtherTarget ? again({ facts, where: "next-target" }) : afterBackoff(facts);
  }
}

/** Whether the provider may bill an attempt that failed so: it was sent, and may have been done. */
export function mayBeBilled(kind: UpstreamFailureKind, hasFirstEvent: boolean): boolean {
  return hasFirstEvent || workedKinds.has(kind);
}

const workedKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "connection-lost",
  "timed-out",
  "broken-answer",
  "unfit-answer",
]);

/** What waiting does not mend. */
function elsewhere(facts: RetryFacts): RetryDecision {
  if (!facts.hasOtherTarget) return giveUp("no-other-target");
  return again({ facts, where: "next-target" });
}

/**
 * At least half of the growing wait, and the rest at random, so that calls which failed together do
 * not come back together, and attempts are spread over time.
 */
function afterBackoff(facts: RetryFacts): RetryDecision {
  const askedMs = facts.isOtherInService ? 0 : (facts.failure.retryAfterMs ?? 0);
  // The caller gets the provider's word instead.
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
  /** The target did no work, so that another try adds no load to it. */
  readonly isFree?: boolean;
}

function again({ facts, where, waitMs = 0, isFree = false }: Again): RetryDecision {
  if (facts.attempts >= facts.attemptLimit) return giveUp("attempt-limit");
  if (waitMs >= facts.remainingMs) return giveUp("deadline");
  const isRepeated = where === "same-target" && !isFree;
  if (isRepeated && !facts.takeBudget()) return giveUp("budget");
  return { action: "retry", where, waitMs };
}

function giveUp(because: GiveUpReason): RetryDecision {
  return { action: "give-up", because };
}
