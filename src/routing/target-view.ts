import type { GiveUpReason, RetryDecision } from "./retry.ts";

/** The state of a target for the calls of one key. */
export interface TargetView {
  /** Set until a probe, or an attempt that began after the due time, is answered. */
  readonly isEjected: boolean;
  /** Remaining ejection; 0 with `isEjected`: it ends at the next answer. */
  readonly ejectedForMs: number;
  /** Reason for the operator; empty if it was never ejected. */
  readonly because: string;
  /** Remaining pause. */
  readonly pausedForMs: number;
  /** In slow start: it takes few attempts at once. */
  readonly isStartingSlowly: boolean;
  /** Whether the target should be probed. */
  readonly needsProbe: boolean;
  /** Of the last ten seconds, from 0 to 1; 0 with too few attempts. */
  readonly failureShare: number;
  /** Moving average of streams; undefined with too few or no recent samples. */
  readonly firstEventMs: number | undefined;
  readonly inFlight: number;
  /** Concurrency limit; Infinity while it shows no overload. */
  readonly limit: number;
}

/** A target that was never tried. */
export const unknownTarget: TargetView = {
  isEjected: false,
  ejectedForMs: 0,
  because: "",
  pausedForMs: 0,
  isStartingSlowly: false,
  needsProbe: false,
  failureShare: 0,
  firstEventMs: undefined,
  inFlight: 0,
  limit: Number.POSITIVE_INFINITY,
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
