import type { AdjustedFields } from "../../domain/chat/adjusted-fields.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { Admission } from "../../admission/admit.ts";
import type { Call } from "../../snapshot/call.ts";
import { candidatesOf } from "./call-candidates.ts";
import { CandidateTurns } from "./candidate-turns.ts";
import { FailedAttempt, graver, isFinal, unfitKinds, withoutExcuse } from "./failed-attempt.ts";
import { firstToAnswer } from "../../routing/hedge.ts";
import type { Meter } from "../metering/meter.ts";
import type { Operation } from "../operation.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { decideRetry, mayBeBilled, type RetryDecision } from "../../routing/retry.ts";
import {
  decisionName,
  describeDecision,
  describeSlowness,
} from "../../routing/describe-decision.ts";
import type { RunningAttempt } from "./running-attempt.ts";
import type { PipelineServices } from "../services.ts";
import { timeoutsOf } from "../../upstream-client/timeouts-of.ts";
import { anyTerms } from "./turn-terms.ts";
import { untilSlow, type Slowness } from "./until-slow.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { whyEnded } from "../../domain/waiting/why-ended.ts";

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
    const { candidates, leftOut } = candidatesOf(plan);
    plan.meter.path.considered(candidates, leftOut);
    this.#turns = new CandidateTurns(candidates, {
      ...plan,
      list: () => candidatesOf(plan).candidates,
    });
  }

  async run(): Promise<Answered<Answer>> {
    const { admission, services } = this.#plan;
    services.budget.hedges.began(admission.model.alias);
    let attempt = (await this.#turns.first()) ?? (await this.#turns.queue());
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
  async #following(failed: FailedAttempt): Promise<RunningAttempt | undefined> {
    this.#turns.refresh();
    const decision = this.#decide(failed, this.#turns.hasOther(failed.attempt.candidate));
    if (decision.action === "give-up") return undefined;
    const attempt = await this.#again(decision, failed.attempt.candidate);
    if (attempt !== undefined || decision.where === "same-target") return attempt;
    // None of the others took an attempt, so there is no other.
    const rest = this.#decide(failed, false);
    return rest.action === "give-up" ? undefined : this.#again(rest, failed.attempt.candidate);
  }

  async #again(
    { where, waitMs }: Retry,
    candidate: Candidate,
  ): Promise<RunningAttempt | undefined> {
    // What a target asked for was not waited for where another is in service.
    const waitedFor = this.#turns.isOtherInService(candidate) ? undefined : candidate;
    await this.#pause(waitMs);
    const terms = { ...anyTerms, isPaid: where === "same-target" };
    if (where === "next-target") {
      return this.#turns.next({ ...terms, isFit: this.#turns.betterThan(candidate) });
    }
    if (waitMs === 0) {
      const same = await this.#turns.begin(candidate, terms);
      if (same !== undefined) return same;
    }
    this.#turns.refresh();
    if (waitMs > 0) this.#turns.giveTurnsAgain(waitedFor);
    return this.#turns.next(terms);
  }

  /** One attempt, or two where the first is slow or its target turns out to be silent. */
  async #answerOf(attempt: RunningAttempt): Promise<Answered<Answer>> {
    if (!this.#turns.hasOther()) return this.#try(attempt, this.#plan.call);
    const first = this.#abortable(attempt);
    const second = await this.#besides(attempt, first.answer);
    if (second === undefined) return first.answer;
    this.#plan.meter.path.hedged();
    return firstToAnswer({ one: first, other: this.#abortable(second) });
  }

  /** The attempt beside one that is slow; undefined once that one has ended by itself. */
  async #besides(
    attempt: RunningAttempt,
    answer: Promise<unknown>,
  ): Promise<RunningAttempt | undefined> {
    const { admission, services } = this.#plan;
    let afterMs = admission.model.hedgeAfterMs;
    let isSilent = false;
    for (;;) {
      const slowness = await untilSlow(answer, {
        afterMs,
        attempt: isSilent ? undefined : attempt,
        // Whoever lists the candidates sees to it that those in doubt are probed.
        look: () => this.#turns.refresh(),
        clock: services.clock,
      });
      if (slowness === undefined) return undefined;
      isSilent ||= slowness === "silent";
      const second = await this.#hedge(answer, attempt, isSilent ? "silent" : slowness);
      if (second !== undefined) return second;
      // Later there may be a place, or the target may turn out to be silent.
      afterMs = isSilent ? lookAgainMs : undefined;
    }
  }

  /** A second attempt beside one that is slow, if there may be one. Never rejects. */
  async #hedge(
    first: Promise<unknown>,
    attempt: RunningAttempt,
    slowness: Slowness,
  ): Promise<RunningAttempt | undefined> {
    const { call, admission, services } = this.#plan;
    const { candidate } = attempt;
    const isInTime = services.clock.monotonic() < endOf(call, candidate);
    if (!isInTime || this.#turns.attempts >= this.#attemptLimit) return undefined;
    let isWanted = true;
    const settle = (): void => void (isWanted = false);
    first.then(settle, settle);
    // Asked once everything else is there, so that nothing is taken from the budget in vain. What
    // hangs at a silent target goes elsewhere once, as it would have done from the start.
    const mayBegin = (): boolean =>
      isWanted && (slowness === "silent" || services.budget.hedges.tryTake(admission.model.alias));
    const isFit = (other: Candidate): boolean => other.isReady;
    try {
      this.#turns.refresh();
      const terms = { ...anyTerms, isFit, isWanted: () => isWanted, mayBegin, keepsTurn: true };
      const second = await this.#turns.next(terms);
      if (second !== undefined) attempt.decided(describeSlowness(slowness));
      return second;
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
      isFinalFor: (error: unknown) => isFinal(error, attempt),
      discard: (late: Answered<Answer>) => late.attempt.end("given-up", meter.inputTokens),
    };
  }

  async #try(attempt: RunningAttempt, call: Call): Promise<Answered<Answer>> {
    const { operation, meter, services } = this.#plan;
    const { candidate } = attempt;
    try {
      const hasOther = this.#turns.hasOther(candidate);
      const { outputCap } = this.#plan.admission;
      const onAdjusted = (fields: AdjustedFields): void => attempt.adjust(fields);
      const { place } = attempt;
      const context = { call, meter, services, place, hasOther, outputCap, onAdjusted };
      const answer = await operation.attempt(candidate, context);
      attempt.answered();
      return { answer, attempt };
    } catch (error) {
      // What the provider has read by now it may bill, and a pool has served.
      if (!(error instanceof UpstreamFailure)) {
        attempt.end("given-up", meter.inputTokens);
        throw error;
      }
      meter.reportedPart(error.details.usage);
      const failure = this.#turns.triesAt(candidate) > 1 ? withoutExcuse(error) : error;
      const hasWorked = mayBeBilled(failure.details.kind, false);
      attempt.end(failure.details, hasWorked ? meter.inputTokens : 0);
      services.onAttemptFailed(call, candidate, failure);
      this.#gravest = graver(this.#gravest, failure);
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
      hasFirstEvent: false,
      remainingMs: endOf(call, candidate) - services.clock.monotonic(),
      takeBudget: () => services.budget.retries.tryTake(candidate.target.id),
      firstBackoffMs: routing.firstBackoffMs,
      longestBackoffMs: routing.longestBackoffMs,
      random: services.random,
    });
    services.onRetryDecided(admission.model.alias, decisionName(decision));
    attempt.decided(describeDecision(decision));
    return decision;
  }

  /** Each target may be tried once, however many there are. */
  get #attemptLimit(): number {
    return Math.max(this.#plan.call.snapshot.routing.attempts, this.#turns.count);
  }

  async #pause(waitMs: number): Promise<void> {
    const { call, services } = this.#plan;
    if (waitMs > 0) await wait(waitMs, call.signal, services.clock);
    if (call.signal.aborted) throw whyEnded(call.signal);
  }
}

/** How often a call that waits at a silent target looks whether another has room. */
const lookAgainMs = 100;

type Retry = Extract<RetryDecision, { action: "retry" }>;

/** When a call's time is over, monotonic milliseconds. */
function endOf({ receivedAt, options }: Call, candidate: Candidate): number {
  const end = receivedAt + timeoutsOf(candidate).totalMs;
  return Math.min(end, options.deadlineAt ?? Infinity);
}
