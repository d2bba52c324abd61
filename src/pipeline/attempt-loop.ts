import type { GatewayError } from "../domain/gateway-error.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { Admission } from "./admit.ts";
import type { Call } from "./call.ts";
import { candidatesOf, ejectedOf } from "./call-candidates.ts";
import { CandidateTurns } from "./candidate-turns.ts";
import { FailedAttempt, graver, isFinal, unfitKinds, withoutExcuse } from "./failed-attempt.ts";
import { hasSettledWithin } from "./has-settled-within.ts";
import { firstToAnswer } from "./hedge.ts";
import type { Meter } from "./meter.ts";
import type { Operation } from "./operation.ts";
import type { Candidate } from "./routing/candidates.ts";
import { decideRetry, decisionName, mayBeBilled, type RetryDecision } from "./routing/retry.ts";
import type { RunningAttempt } from "./running-attempt.ts";
import type { PipelineServices } from "./services.ts";
import { timeoutsOf } from "./timeouts-of.ts";
import { wait } from "./wait.ts";
import { whyEnded } from "./why-ended.ts";

export interface AttemptPlan<Answer> {
  readonly call: Call;
  readonly admission: Admission;
  readonly operation: Operation<Answer>;
  readonly meter: Meter;
  readonly services: PipelineServices;
}

/** An answer and the attempt that brought it; the attempt goes on as long as the answer does. */
export interface Answered<Answer> {
  readonly answer: Answer;
  readonly attempt: RunningAttempt;
}

/**
 * Tries the candidates of a call until one answers. Nothing has reached the caller while this runs.
 * Throws the `UpstreamFailure` that tells the caller most, or `GatewayError`.
 */
export function attemptInTurn<Answer>(plan: AttemptPlan<Answer>): Promise<Answered<Answer>> {
  return new AttemptLoop(plan).run();
}

class AttemptLoop<Answer> {
  readonly #plan: AttemptPlan<Answer>;
  readonly #turns: CandidateTurns;
  #gravest: UpstreamFailure | undefined;

  constructor(plan: AttemptPlan<Answer>) {
    this.#plan = plan;
    const candidates = candidatesOf(plan);
    plan.meter.path.considered(candidates, ejectedOf(plan, candidates));
    this.#turns = new CandidateTurns(candidates, plan);
  }

  async run(): Promise<Answered<Answer>> {
    const { admission, services } = this.#plan;
    services.budget.callBegan(admission.model.alias);
    let attempt = (await this.#turns.next()) ?? (await this.#turns.queue());
    for (;;) {
      try {
        return await this.#answerOf(attempt);
      } catch (error) {
        if (!(error instanceof FailedAttempt)) throw error;
        const following = await this.#following(error);
        if (following === undefined) throw this.#verdict(error.failure);
        attempt = following;
      }
    }
  }

  /**
   * What no asked target can do, one that was busy might have done; and so might one that was busy
   * when it was to be asked with a fresh credential.
   */
  #verdict(last: UpstreamFailure): GatewayError | UpstreamFailure {
    const gravest = this.#gravest ?? last;
    const { kind } = gravest.details;
    const mayBeMended = kind === "unsupported" || kind === "stale-credential";
    return mayBeMended && this.#turns.foundBusy ? this.#turns.busyError() : gravest;
  }

  /** The attempt after one that failed; undefined when there is none. */
  async #following({ failure, candidate }: FailedAttempt): Promise<RunningAttempt | undefined> {
    const { admission, services } = this.#plan;
    const { hasOther } = this.#turns;
    const isAllowed = (): boolean => services.budget.tryRetry(admission.model.alias);
    const decision = this.#decide(failure, candidate, { hasOther, isAllowed });
    services.onRetryDecided(admission.model.alias, decisionName(decision));
    if (decision.action === "give-up") return undefined;
    const attempt = await this.#again(decision, candidate);
    if (attempt !== undefined || decision.where === "same-target") return attempt;
    // The others are busy, so there is no other; this retry is in the budget already.
    const rest = this.#decide(failure, candidate, { hasOther: false, isAllowed: () => true });
    return rest.action === "give-up" ? undefined : this.#again(rest, candidate);
  }

  async #again(
    { where, waitMs }: Retry,
    candidate: Candidate,
  ): Promise<RunningAttempt | undefined> {
    await this.#pause(waitMs);
    if (waitMs > 0) this.#turns.giveTurnsAgain(candidate);
    const same =
      where === "same-target" && waitMs === 0 ? await this.#turns.begin(candidate) : undefined;
    return same ?? this.#turns.next();
  }

  /** One attempt, or two where the model is hedged and the first is slow. */
  async #answerOf(attempt: RunningAttempt): Promise<Answered<Answer>> {
    const { call, admission, operation, services } = this.#plan;
    const { hedgeAfterMs } = admission.model;
    if (hedgeAfterMs === undefined || !operation.isStreamed) return this.#try(attempt, call);
    const first = this.#abortable(attempt);
    if (await hasSettledWithin(first.answer, hedgeAfterMs, services.clock)) return first.answer;
    const second = await this.#hedge(first.answer, attempt.candidate);
    if (second === undefined) return first.answer;
    return firstToAnswer({ one: first, other: this.#abortable(second), isFinal });
  }

  /** A second attempt beside one that is slow, if there may be one. Never rejects. */
  async #hedge(first: Promise<unknown>, candidate: Candidate): Promise<RunningAttempt | undefined> {
    const { call, admission, services } = this.#plan;
    const isInTime = services.clock.monotonic() < endOf(call, candidate);
    if (this.#turns.attempts >= call.snapshot.routing.attempts || !isInTime) return undefined;
    let isWanted = true;
    const settle = (): void => void (isWanted = false);
    first.then(settle, settle);
    // Asked once everything else is there, so that nothing is taken from the budget in vain.
    const mayBegin = (): boolean => isWanted && services.budget.tryRetry(admission.model.alias);
    try {
      return await this.#turns.next({ isWanted: () => isWanted, mayBegin });
    } catch {
      // Whatever it was, the first attempt tells better how the call ends.
      return undefined;
    }
  }

  #abortable(attempt: RunningAttempt) {
    const { call, meter } = this.#plan;
    const end = new AbortController();
    const signal = AbortSignal.any([call.signal, end.signal]);
    return {
      answer: this.#try(attempt, { ...call, signal }),
      abort: () => end.abort(),
      discard: (late: Answered<Answer>) => late.attempt.end("given-up", meter.likelyInputTokens),
    };
  }

  async #try(attempt: RunningAttempt, call: Call): Promise<Answered<Answer>> {
    const { operation, meter, services } = this.#plan;
    const { candidate } = attempt;
    const isGuaranteed = this.#turns.classAt(candidate) === "provisioned";
    try {
      const context = { call, meter, services, isGuaranteed };
      const answer = await operation.attempt(candidate, context);
      // Of a whole answer the first event is the last.
      if (operation.isStreamed) attempt.answered();
      return { answer, attempt };
    } catch (error) {
      // What the provider has read by now it may bill, and a pool has served.
      if (!(error instanceof UpstreamFailure)) {
        attempt.end("given-up", meter.likelyInputTokens);
        throw error;
      }
      const failure = this.#turns.triesAt(candidate) > 1 ? withoutExcuse(error) : error;
      const hasWorked = mayBeBilled(failure.details.kind, false);
      attempt.end(failure.details, hasWorked ? meter.likelyInputTokens : 0);
      services.onAttemptFailed(call, candidate, failure);
      this.#gravest = graver(this.#gravest, failure);
      if (unfitKinds.has(failure.details.kind)) this.#turns.leaveOut(candidate);
      throw new FailedAttempt(failure, candidate);
    }
  }

  #decide(
    { details }: UpstreamFailure,
    candidate: Candidate,
    { hasOther, isAllowed }: { readonly hasOther: boolean; readonly isAllowed: () => boolean },
  ): RetryDecision {
    const { call, services } = this.#plan;
    const { routing } = call.snapshot;
    const now = services.clock.monotonic();
    return decideRetry({
      failure: details,
      triesAtTarget: this.#turns.triesAt(candidate),
      attempts: this.#turns.attempts,
      attemptLimit: routing.attempts,
      hasOtherTarget: hasOther,
      isCallerGone: call.signal.aborted,
      hasFirstEvent: false,
      remainingMs: endOf(call, candidate) - now,
      hasBudget: isAllowed,
      firstBackoffMs: routing.firstBackoffMs,
      longestBackoffMs: routing.longestBackoffMs,
      random: services.random,
    });
  }

  async #pause(waitMs: number): Promise<void> {
    const { call, services } = this.#plan;
    if (waitMs > 0) await wait(waitMs, call.signal, services.clock);
    if (call.signal.aborted) throw whyEnded(call.signal);
  }
}

type Retry = Extract<RetryDecision, { action: "retry" }>;

/** When a call's time is over, monotonic milliseconds. */
function endOf({ receivedAt, options }: Call, candidate: Candidate): number {
  const end = receivedAt + timeoutsOf(candidate).totalMs;
  return Math.min(end, options.deadlineAt ?? Infinity);
}
