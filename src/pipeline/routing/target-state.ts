import type { EjectionSettings } from "../../domain/routing-settings.ts";
import type { UpstreamFailureDetails } from "../../domain/upstream-failure.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { Ejection, type EjectionNotice, type Evidence, type ObservedAttempt } from "./ejection.ts";
import { evidenceOf, isTooMuch } from "./failure-evidence.ts";
import { FirstEventAverage } from "./first-event-average.ts";
import type { TargetView } from "./target-view.ts";
import { ThrottlePause } from "./throttle-pause.ts";

/** How an attempt ended: well, because its caller no longer wanted it, or by a failure. */
export type AttemptEnd = "ok" | "left" | UpstreamFailureDetails;

/** An attempt under way. */
export interface WatchedAttempt extends ObservedAttempt {
  readonly beganMs: number;
  isAnswered: boolean;
}

/** What an attempt is not held to. */
export interface AttemptTerms {
  /** The target serves whatever happened to it. */
  readonly hasToServe?: boolean;
  /** The attempt is within what was sold. */
  readonly isGuaranteed?: boolean;
}

/** What an event of an attempt changed about its target. */
export type TargetChange = { readonly ejected: EjectionNotice } | "returned" | undefined;

/** All that is remembered of one target, of bounded size. Callers name the time. */
export class TargetState {
  readonly #ejection = new Ejection();
  readonly #limit = new ConcurrencyLimit();
  readonly #pause = new ThrottlePause();
  readonly #firstEvent = new FirstEventAverage();
  #probe: WatchedAttempt | undefined;

  /** Undefined when the target takes no further attempt now. */
  tryBegin(
    nowMs: number,
    { hasToServe = false, isGuaranteed = false }: AttemptTerms,
  ): WatchedAttempt | undefined {
    const isProbe = this.#ejection.isHalfOpen(nowMs) && !hasToServe && !isGuaranteed;
    if (isProbe && this.#probe !== undefined) return undefined;
    if (isGuaranteed) this.#limit.enterAnyway();
    else if (!this.#limit.tryEnter(nowMs)) return undefined;
    const observed = this.#ejection.observe(nowMs);
    const attempt = { ...observed, beganMs: nowMs, isAnswered: false };
    if (isProbe) this.#probe = attempt;
    return attempt;
  }

  answered(attempt: WatchedAttempt, nowMs: number, firstEventMs: number): TargetChange {
    attempt.isAnswered = true;
    this.#firstEvent.answered(nowMs, firstEventMs);
    this.#pause.answered(nowMs);
    return this.#showedLife(attempt, nowMs);
  }

  ended(
    attempt: WatchedAttempt,
    end: AttemptEnd,
    { nowMs, settings }: { readonly nowMs: number; readonly settings: EjectionSettings },
  ): TargetChange {
    this.#learn(attempt, end, nowMs);
    this.#limit.leave();
    const evidence = evidenceOfEnd(attempt, end);
    let change: TargetChange;
    if (evidence === "life") {
      change = this.#showedLife(attempt, nowMs);
      this.#ejection.lived(attempt, nowMs);
    } else if (evidence === "failure" && typeof end !== "string") {
      const ejected = this.#ejection.failed(attempt, nowMs, { kind: end.kind, settings });
      change = ejected && { ejected };
    }
    if (this.#probe === attempt || change !== undefined) this.#probe = undefined;
    return change;
  }

  viewAt(nowMs: number): TargetView {
    return {
      isEjected: this.#ejection.isEjected,
      ejectedForMs: this.#ejection.leftMs(nowMs),
      isProbing: this.#probe !== undefined,
      pausedForMs: this.#pause.leftMs(nowMs),
      failureShare: this.#ejection.failureShare(nowMs),
      firstEventMs: this.#firstEvent.valueAt(nowMs),
      inFlight: this.#limit.inFlight,
      limit: this.#limit.limitAt(nowMs),
    };
  }

  /** What is learnt beside whether the target is broken. */
  #learn(attempt: WatchedAttempt, end: AttemptEnd, nowMs: number): void {
    if (end === "ok") {
      this.#limit.success(nowMs);
    } else if (end === "left") {
      if (!attempt.isAnswered) this.#firstEvent.unanswered(nowMs, nowMs - attempt.beganMs);
    } else {
      if (isTooMuch(end)) this.#limit.trouble(nowMs);
      if (end.kind === "throttled") this.#pause.throttled(nowMs, end.retryAfterMs);
      else if (end.retryAfterMs !== undefined) this.#pause.asked(nowMs, end.retryAfterMs);
    }
  }

  #showedLife(attempt: WatchedAttempt, nowMs: number): TargetChange {
    if (!this.#ejection.answered(attempt, nowMs)) return undefined;
    this.#probe = undefined;
    return "returned";
  }
}

/** A caller that left before the first event has waited for a target that may be dead. */
function evidenceOfEnd({ isAnswered }: WatchedAttempt, end: AttemptEnd): Evidence {
  if (typeof end !== "string") return evidenceOf(end);
  return end === "ok" || isAnswered ? "life" : "neither";
}
