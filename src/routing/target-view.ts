import type { GiveUpReason, RetryDecision } from "./retry.ts";

/** The state of a target for the calls of one key. */
export interface TargetView {
  /** Set until a probe, or an attempt that began after the time, is answered. */
  readonly isOut: boolean;
  /** The time that is left; 0 with `isOut`: it ends at the next answer. */
  readonly outForMs: number;
  /** Reason for the operator; empty if it was never out. */
  readonly because: string;
  /** Its provider refuses requests, and that time is not over. */
  readonly isRefusing: boolean;
  readonly needsProbe: boolean;
}

export const unknownTarget: TargetView = {
  isOut: false,
  outForMs: 0,
  because: "",
  isRefusing: false,
  needsProbe: false,
};

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

/** A retry was decided, and no attempt began. */
export const noPlace = "gave up: no target had a place for another attempt";

export function describeSlowness(slowness: "slow" | "silent"): string {
  return slowness === "slow"
    ? "asked a second target as well: no answer within hedge_after"
    : "asked a second target as well: this one is silent for longer than usual";
}

const reasons: Readonly<Record<GiveUpReason, string>> = {
  "caller-gone": "the caller had left, or the call had to end",
  "cannot-mend": "another attempt would fail in the same way",
  "attempt-limit": "routing.attempts was reached",
  "no-other-target": "no other target was left, and waiting does not help",
  "asked-to-wait": "the provider asked for a longer wait than routing.longest_backoff",
  deadline: "the time of the call would have ended before the next attempt",
  budget: "the retry budget of the target was used up (routing.retry_budget)",
};

export function describeOut({ outForMs, because }: TargetView): string {
  const until = outForMs === 0 ? "until it answers" : `for ${Math.ceil(outForMs / 1_000)} s`;
  return `out ${until}: ${because}`;
}
