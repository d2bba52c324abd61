import type { TargetView } from "./target-view.ts";
import type { GiveUpReason, RetryDecision } from "./retry.ts";

/** A fixed set of words, used as a metric label. */
export function decisionName(decision: RetryDecision): string {
  return decision.action === "retry" ? decision.where : decision.because;
}

/** The rule that decided, for the explanation of a call's routing. */
export function describeDecision(decision: RetryDecision): string {
  if (decision.action === "give-up") return `gave up: ${reasons[decision.because]}`;
  const { where, waitMs } = decision;
  if (waitMs > 0) return `tried again after ${Math.round(waitMs)} ms`;
  return where === "next-target" ? "tried the next target" : "tried the same target again";
}

/** Why a hedge was started. */
export function describeSlowness(slowness: "slow" | "silent"): string {
  return slowness === "slow"
    ? "asked a second target as well: no answer within hedge_after"
    : "asked a second target as well: this one does not answer probes either";
}

const reasons: Readonly<Record<GiveUpReason, string>> = {
  "caller-gone": "the caller had left",
  "answer-began": "the answer had begun",
  "cannot-mend": "another attempt would fail in the same way",
  "attempt-limit": "routing.attempts was reached",
  "no-other-target": "no other target was left, and waiting does not help",
  "asked-to-wait": "the provider asked for a longer wait than routing.longest_backoff",
  deadline: "the time of the call would have ended before the next attempt",
  budget: "the retry budget of the target was used up (routing.retry_budget)",
};

/** Why a target took no attempt. */
export function describeClosed({ isEjected, because, pausedForMs }: TargetView): string {
  if (isEjected) return `it was ejected: ${because}`;
  if (pausedForMs > 0) return "it was paused, as its provider asked";
  return "it returned a moment ago and starts slowly";
}
