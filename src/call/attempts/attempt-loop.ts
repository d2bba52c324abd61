import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { asBadCredential, UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { Admission } from "../../admission/admit.ts";
import type { Call } from "../../snapshot/call.ts";
import { type CallWork, candidatesOf, probeDue } from "./call-candidates.ts";
import { anyTerms, CandidateTurns } from "./candidate-turns.ts";
import { FailedAttempt, failureToReport, isFinal, unfitKinds } from "./failed-attempt.ts";
import { firstToAnswer } from "../../routing/hedge.ts";
import type { Meter } from "../metering/meter.ts";
import type { CallServices } from "../services.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { decideRetry, type RetryDecision } from "../../routing/retry.ts";
import {
  decisionName,
  describeDecision,
  describeSlowness,
  noPlace,
} from "../../routing/target-view.ts";
import type { Attempt } from "./attempt.ts";
import { timeoutsOf } from "../../upstream-client/transport.ts";
import { wait, whyEnded } from "../../domain/waiting/wait.ts";

export interface AttemptPlan<Answer> {
  readonly call: Call;
  readonly admission: Admission;
  readonly work: CallWork<Answer>;
  readonly meter: Meter;
  readonly services: CallServices;
}

/** An answer and its attempt, which lasts as long as the answer. */
export interface Answered<Answer> {
  readonly answer: Answer;
  readonly attempt: Attempt;
}

/**
 * Tries the candidates of a call until one answers; nothing reaches the caller before. Throws the
 * most informative `UpstreamFailure`, or `GatewayError`.
 */
export function attemptInTurn<Answer>(plan: AttemptPlan<Answer>): Promise<Answered<Answer>> {
  return new AttemptLoop(plan).run();
}

class AttemptLoop<Answer> {
  readonly #plan: AttemptPlan<Answer>;
  readonly #turns: CandidateTurns;
  #toReport: UpstreamFailure | undefined;

  constructor(plan: AttemptPlan<Answer>) {
    this.#plan = plan;
    const found = candidatesOf(plan);
    const { candidates, leftOut } = found;
    plan.meter.path.considered(candidates, leftOut);
    probeDue(found, plan);
    this.#turns = new CandidateTurns(candidates, plan);
  }

  async run(): Promise<Answered<Answer>> {
    const { admission, services } = this.#plan;
    services.budget.hedges.began(admission.model.alias);
    const first = this.#turns.first();
    let attempt = first instanceof Promise ? await first : first;
    for (;;) {
      try {
        return await this.#answerOf(attempt);
      } catch (error) {
        if (!(error instanceof FailedAttempt)) throw error;
        const next = await this.#nextAttempt(error);
        if (next === undefined) throw this.#finalError(error.failure);
        attempt = next;
      }
    }
  }

  /** A busy target might have served the call, also one that was busy at the retry with a fresh credential. */
  #finalError(last: UpstreamFailure): GatewayError | UpstreamFailure {
    const failure = this.#toReport ?? last;
    const { kind } = failure.details;
    const mightBeServed = kind === "unsupported" || kind === "stale-credential";
    return mightBeServed && this.#turns.foundBusy ? this.#turns.busyError() : failure;
  }

  /** The attempt after a failed one; undefined if none follows. */
  async #nextAttempt(failed: FailedAttempt): Promise<Attempt | undefined> {
    this.#turns.refresh();
    const decision = this.#decide(failed, this.#turns.hasOther(failed.attempt.candidate));
    if (decision.action === "give-up") return undefined;
    const next = await this.#retry(decision, failed.attempt);
    if (next !== undefined || decision.where === "same-target") return next;
    // None of the other targets started an attempt, so decide as if there were none.
    const rest = this.#decide(failed, false);
    return rest.action === "give-up" ? undefined : this.#retry(rest, failed.attempt);
  }

  async #retry(decision: Retry, failed: Attempt): Promise<Attempt | undefined> {
    const { candidate } = failed;
    // Another target may be in service; the wait for this one's Retry-After was then skipped.
    const waitedFor = this.#turns.isOtherInService(candidate) ? undefined : candidate;
    await this.#pause(decision.waitMs, failed);
    const next = await this.#begin(decision, candidate, waitedFor);
    if (next === undefined) failed.decided(noPlace);
    return next;
  }

  async #begin(
    { where, waitMs }: Retry,
    candidate: Candidate,
    waitedFor: Candidate | undefined,
  ): Promise<Attempt | undefined> {
    const terms = { ...anyTerms, isPaid: where === "same-target" };
    if (where === "next-target") {
      return this.#turns.next({ ...terms, isFit: this.#turns.betterThan(candidate) });
    }
    if (waitMs === 0) {
      const same = await this.#turns.begin(candidate, terms);
      if (same !== undefined) return same;
    }
    this.#turns.refresh();
    if (waitMs > 0) this.#turns.resetTurns(waitedFor);
    return this.#turns.next(terms);
  }

  /** Runs one attempt, plus a hedge if it is slow or its target silent. */
  #answerOf(attempt: Attempt): Promise<Answered<Answer>> {
    const { admission } = this.#plan;
    const { hedgeAfterMs = Infinity } = admission.model;
    const { overdueAfterMs } = attempt;
    const waitMs = Math.min(hedgeAfterMs, overdueAfterMs);
    if (waitMs === Infinity || !this.#turns.hasOther()) return this.#try(attempt);
    return this.#answerWithHedge(attempt, waitMs, overdueAfterMs < hedgeAfterMs);
  }

  #answerWithHedge(
    attempt: Attempt,
    afterMs: number,
    isOverdue: boolean,
  ): Promise<Answered<Answer>> {
    const { meter, services } = this.#plan;
    const { overdueAfterMs } = attempt;
    const first = this.#abortable(attempt);
    return new Promise((resolve, reject) => {
      let isSilent = isOverdue;
      let pollMs = firstHedgePollMs;
      let hasEnded = false;
      /** The hedge that begins, or has begun, decides. */
      let isHedging = false;
      const hedge = (): void => {
        isHedging = true;
        void this.#hedge(attempt, isSilent, () => !hasEnded).then((second) => {
          if (second !== undefined) {
            meter.path.hedged();
            return firstToAnswer({ one: first, other: this.#abortable(second) }).then(
              resolve,
              reject,
            );
          }
          isHedging = false;
          if (hasEnded) return first.answer.then(resolve, reject);
          // A place or the budget may become free.
          const waitMs = isSilent ? pollMs : Math.max(0, overdueAfterMs - attempt.ageMs);
          if (isSilent) pollMs *= 2;
          isSilent = true;
          const isLast = this.#turns.attempts >= this.#attemptLimit;
          if (waitMs < Infinity && !isLast) cancel = services.clock.schedule(hedge, waitMs);
          return undefined;
        });
      };
      let cancel = services.clock.schedule(hedge, afterMs);
      const end = (): void => {
        hasEnded = true;
        cancel();
        if (!isHedging) resolve(first.answer);
      };
      first.answer.then(end, end);
    });
  }

  /** Starts a second attempt if possible. Never rejects. */
  async #hedge(
    attempt: Attempt,
    isSilent: boolean,
    isWanted: () => boolean,
  ): Promise<Attempt | undefined> {
    const { call, services } = this.#plan;
    const { candidate } = attempt;
    const isInTime = services.clock.monotonic() < endOf(call, candidate);
    if (!isInTime || this.#turns.attempts >= this.#attemptLimit) return undefined;
    // Checked once there is a place, so that little of the budget is wasted.
    const mayBegin = (): boolean => isWanted() && this.#isInHedgeBudget(candidate, isSilent);
    const isFit = (other: Candidate): boolean => other.isReady;
    try {
      this.#turns.refresh();
      const terms = { ...anyTerms, isFit, isWanted, mayBegin, keepsTurn: true };
      const second = await this.#turns.next(terms);
      if (second !== undefined) attempt.decided(describeSlowness(isSilent ? "silent" : "slow"));
      return second;
    } catch {
      // The first attempt decides how the call ends.
      return undefined;
    }
  }

  /** A call at a target that is out by now would have gone elsewhere from the start. */
  #isInHedgeBudget({ target }: Candidate, isSilent: boolean): boolean {
    const { call, admission, services } = this.#plan;
    const { budget, health } = services;
    const keyId = call.caller.key.id;
    if (!isSilent) return budget.hedges.tryTake(admission.model.alias, keyId);
    return health.view(target.id, keyId).isOut || budget.retries.tryTake(target.id, keyId);
  }

  #abortable(attempt: Attempt) {
    const { meter } = this.#plan;
    const end = attempt.endsAlone();
    return {
      answer: this.#try(attempt),
      abort: (isBeaten: boolean) => {
        if (isBeaten && attempt.ageMs >= attempt.overdueAfterMs) attempt.wasSilent();
        end.abort(new DOMException("the other attempt decides", "AbortError"));
      },
      isFinalFor: (error: unknown) => isFinal(error, attempt),
      discard: (late: Answered<Answer>) => late.attempt.end("given-up", meter.inputTokens),
    };
  }

  async #try(attempt: Attempt): Promise<Answered<Answer>> {
    const { call, work, meter, services } = this.#plan;
    const { candidate } = attempt;
    attempt.hasOther = this.#turns.hasOther(candidate);
    try {
      const answer = await work.attempt(attempt);
      attempt.answered();
      return { answer, attempt };
    } catch (error) {
      // The provider may bill what it has read, and the pool has served the call.
      if (!(error instanceof UpstreamFailure)) {
        attempt.end("given-up", attempt.wasSent ? meter.inputTokens : 0);
        throw error;
      }
      const failure = this.#turns.triesAt(candidate) > 1 ? asBadCredential(error) : error;
      const { target } = candidate;
      const unanswered = { target, share: work.unanswered(), elapsedMs: attempt.ageMs };
      attempt.end(failure.details, meter.attemptFailed(failure.details, unanswered));
      services.onAttemptFailed(call, candidate, failure);
      this.#toReport = failureToReport(this.#toReport, failure);
      if (unfitKinds.has(failure.details.kind)) this.#turns.leaveOut(candidate);
      if (failure.details.kind === "context-overflow") this.#turns.leaveOutTooSmall(candidate);
      throw new FailedAttempt(failure, attempt);
    }
  }

  #decide({ failure, attempt }: FailedAttempt, hasOtherTarget: boolean): RetryDecision {
    const { call, admission, services } = this.#plan;
    const { candidate } = attempt;
    const { routing } = call.snapshot;
    const decision = decideRetry({
      failure: failure.details,
      triesAtTarget: this.#turns.triesAt(candidate),
      attempts: this.#turns.attempts,
      attemptLimit: this.#attemptLimit,
      hasOtherTarget,
      isOtherInService: this.#turns.isOtherInService(candidate),
      isCallerGone: call.signal.aborted,
      remainingMs: endOf(call, candidate) - services.clock.monotonic(),
      takeBudget: () => services.budget.retries.tryTake(candidate.target.id, call.caller.key.id),
      firstBackoffMs: routing.firstBackoffMs,
      longestBackoffMs: routing.longestBackoffMs,
      random: services.random,
    });
    services.onRetryDecided(admission.model.alias, decisionName(decision));
    attempt.decided(describeDecision(decision));
    return decision;
  }

  /** Each target may be tried once, even above the configured limit. */
  get #attemptLimit(): number {
    return Math.max(this.#plan.call.snapshot.routing.attempts, this.#turns.count);
  }

  async #pause(waitMs: number, failed: Attempt): Promise<void> {
    const { call, services } = this.#plan;
    if (waitMs > 0) await wait(waitMs, call.signal, services.clock);
    if (!call.signal.aborted) return;
    failed.decided(describeDecision({ action: "give-up", because: "caller-gone" }));
    throw whyEnded(call.signal);
  }
}

/**
 * When a call that waits at a silent target first tries again to begin at another one; each further
 * wait is twice as long.
 */
const firstHedgePollMs = 100;

type Retry = Extract<RetryDecision, { action: "retry" }>;

/** The deadline of a call in monotonic milliseconds. */
function endOf({ receivedAt, options }: Call, candidate: Candidate): number {
  const end = receivedAt + timeoutsOf(candidate).totalMs;
  return Math.min(end, options.deadlineAt ?? Infinity);
}
