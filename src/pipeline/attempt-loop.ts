import type { GatewayError } from "../domain/gateway-error.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { CapacityClass } from "../domain/usage.ts";
import type { Admission } from "./admit.ts";
import type { Call } from "./call.ts";
import { candidatesOf, ejectedOf } from "./call-candidates.ts";
import { busyError } from "./capacity/busy-error.ts";
import type { BusyPool, EnterResult } from "./capacity/place.ts";
import {
  FailedAttempt,
  graver,
  isFinal,
  noTarget,
  unfitKinds,
  withoutExcuse,
} from "./failed-attempt.ts";
import { firstToAnswer, hasAnsweredWithin } from "./hedge.ts";
import type { Meter } from "./meter.ts";
import type { Operation } from "./operation.ts";
import type { Candidate } from "./routing/candidates.ts";
import { decideRetry, decisionName, type RetryDecision } from "./routing/retry.ts";
import { RunningAttempt } from "./running-attempt.ts";
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

/** How often a call looks again whether a target that is at its limit takes it. */
const limitPollMs = 25;

class AttemptLoop<Answer> {
  readonly #plan: AttemptPlan<Answer>;
  readonly #candidates: Candidate[];
  /** Since all had their turn, or were found busy. */
  readonly #tried = new Set<Candidate>();
  readonly #triesAt = new Map<Candidate, number>();
  #attempts = 0;
  #busy: BusyPool | undefined;

  constructor(plan: AttemptPlan<Answer>) {
    this.#plan = plan;
    this.#candidates = [...candidatesOf(plan)];
  }

  async run(): Promise<Answered<Answer>> {
    const { admission, meter, services } = this.#plan;
    meter.considered(this.#candidates, () => ejectedOf(this.#plan));
    services.budget.callBegan(admission.model.alias);
    let attempt = (await this.#next()) ?? (await this.#queue());
    let gravest: UpstreamFailure | undefined;
    for (;;) {
      try {
        return await this.#answerOf(attempt);
      } catch (error) {
        if (!(error instanceof FailedAttempt)) throw error;
        const { failure, candidate } = error;
        gravest = graver(gravest, failure);
        if (unfitKinds.has(failure.details.kind)) this.#leaveOut(candidate);
        const decision = this.#decide(failure, candidate);
        services.onRetryDecided(admission.model.alias, decisionName(decision));
        if (decision.action === "give-up") throw this.#verdict(gravest);
        const following = await this.#after(decision, candidate);
        if (following === undefined) throw this.#verdict(gravest);
        attempt = following;
      }
    }
  }

  /** What no asked target can do, one that was busy might have done. */
  #verdict(gravest: UpstreamFailure): GatewayError | UpstreamFailure {
    const isUnsupported = gravest.details.kind === "unsupported";
    return isUnsupported && this.#busy !== undefined ? this.#busyError() : gravest;
  }

  async #after(
    { where, waitMs }: Extract<RetryDecision, { action: "retry" }>,
    candidate: Candidate,
  ): Promise<RunningAttempt | undefined> {
    await this.#pause(waitMs);
    if (waitMs > 0) this.#giveTurnsAgain(candidate);
    const same = where === "same-target" && waitMs === 0 ? await this.#begin(candidate) : undefined;
    return same ?? this.#next();
  }

  /** One attempt, or two where the model is hedged and the first is slow. */
  async #answerOf(attempt: RunningAttempt): Promise<Answered<Answer>> {
    const { call, admission, operation, services } = this.#plan;
    const { hedgeAfterMs } = admission.model;
    if (hedgeAfterMs === undefined || !operation.isStreamed) return this.#try(attempt, call);
    const first = this.#abortable(attempt);
    if (await hasAnsweredWithin(first.answer, hedgeAfterMs, services.clock)) return first.answer;
    let isWanted = true;
    const settle = (): void => void (isWanted = false);
    first.answer.then(settle, settle);
    const isAllowed = services.budget.tryRetry(admission.model.alias);
    const second = isAllowed ? await this.#next(() => isWanted) : undefined;
    if (second === undefined) return first.answer;
    return firstToAnswer({ one: first, other: this.#abortable(second), isFinal });
  }

  #abortable(attempt: RunningAttempt) {
    const { call } = this.#plan;
    const end = new AbortController();
    const signal = AbortSignal.any([call.signal, end.signal]);
    return {
      answer: this.#try(attempt, { ...call, signal }),
      abort: () => end.abort(),
      discard: (late: Answered<Answer>) => late.attempt.end("given-up", 0),
    };
  }

  async #try(attempt: RunningAttempt, call: Call): Promise<Answered<Answer>> {
    const { operation, meter, services } = this.#plan;
    const { candidate } = attempt;
    try {
      const answer = await operation.attempt(candidate, { call, meter, services });
      attempt.answered();
      return { answer, attempt };
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) {
        attempt.end("given-up", 0);
        throw error;
      }
      const failure = (this.#triesAt.get(candidate) ?? 0) > 1 ? withoutExcuse(error) : error;
      attempt.end(failure.details, 0);
      services.onAttemptFailed(call, candidate, failure);
      throw new FailedAttempt(failure, candidate);
    }
  }

  #decide({ details }: UpstreamFailure, candidate: Candidate): RetryDecision {
    const { call, admission, services } = this.#plan;
    const { routing } = call.snapshot;
    const now = services.clock.monotonic();
    return decideRetry({
      failure: details,
      triesAtTarget: this.#triesAt.get(candidate) ?? 1,
      attempts: this.#attempts,
      attemptLimit: routing.attempts,
      hasOtherTarget: this.#candidates.some((other) => !this.#tried.has(other)),
      isCallerGone: call.signal.aborted,
      hasFirstEvent: false,
      remainingMs: endOf(call, candidate) - now,
      hasBudget: () => services.budget.tryRetry(admission.model.alias),
      firstBackoffMs: routing.firstBackoffMs,
      longestBackoffMs: routing.longestBackoffMs,
      random: services.random,
    });
  }

  #leaveOut(candidate: Candidate): void {
    this.#candidates.splice(this.#candidates.indexOf(candidate), 1);
    this.#tried.delete(candidate);
  }

  async #pause(waitMs: number): Promise<void> {
    const { call, services } = this.#plan;
    if (waitMs > 0) await wait(waitMs, call.signal, services.clock);
    if (call.signal.aborted) throw whyEnded(call.signal);
  }

  /** After a wait all targets have their turn again, but for those that asked for a longer one. */
  #giveTurnsAgain(waitedFor: Candidate): void {
    const { health } = this.#plan.services;
    this.#tried.clear();
    for (const other of this.#candidates) {
      const isPaused = health.view(other.target.id).pausedForMs > 0;
      if (isPaused && other !== waitedFor) this.#tried.add(other);
    }
  }

  /** Begins at the first candidate that has not had its turn and has a place now. */
  async #next(isWanted = (): boolean => true): Promise<RunningAttempt | undefined> {
    for (const candidate of this.#candidates) {
      if (this.#tried.has(candidate)) continue;
      const attempt = await this.#begin(candidate, isWanted);
      if (attempt !== undefined || !isWanted()) return attempt;
    }
    return undefined;
  }

  async #begin(
    candidate: Candidate,
    isWanted = (): boolean => true,
  ): Promise<RunningAttempt | undefined> {
    const { call, services } = this.#plan;
    this.#tried.add(candidate);
    const entering = services.capacity.tryEnter(candidate, this.#wish(candidate), call.snapshot);
    const entered = entering instanceof Promise ? await entering : entering;
    if (isWanted()) return this.#enter(candidate, entered);
    this.#tried.delete(candidate);
    if ("place" in entered) entered.place.leave();
    return undefined;
  }

  #enter(candidate: Candidate, entered: EnterResult): RunningAttempt | undefined {
    const { call, meter, services } = this.#plan;
    // The limiter and the queue take their time; nothing begins for a caller that left meanwhile.
    if (call.signal.aborted) {
      if ("place" in entered) entered.place.leave();
      throw whyEnded(call.signal);
    }
    if (!("place" in entered)) {
      this.#busy ??= entered;
      return undefined;
    }
    const { place } = entered;
    const watch = services.health.tryBegin(candidate.target, candidate.hasToServe);
    if (watch === undefined) {
      place.settle(0);
      place.leave();
      return undefined;
    }
    const { clock } = services;
    const { receivedAt } = call;
    const attempt = new RunningAttempt({ candidate, place, watch, clock, receivedAt });
    this.#attempts += 1;
    this.#triesAt.set(candidate, (this.#triesAt.get(candidate) ?? 0) + 1);
    meter.began(attempt);
    return attempt;
  }

  /** Waits at the first candidate, as long as the plan allows, where all were found busy. */
  async #queue(): Promise<RunningAttempt> {
    const { call, services } = this.#plan;
    const [candidate] = this.#candidates;
    if (candidate === undefined) throw noTarget();
    const patience = call.snapshot.plans.get(call.caller.key.plan)?.queueTimeoutMs ?? 0;
    const end = services.clock.monotonic() + patience;
    for (;;) {
      const patienceMs = end - services.clock.monotonic();
      if (patienceMs <= 0) throw this.#busyError();
      const entered = await services.capacity.enter(candidate, {
        ...this.#wish(candidate),
        snapshot: call.snapshot,
        signal: call.signal,
        patienceMs,
      });
      this.#busy = undefined;
      const attempt = this.#enter(candidate, entered);
      if (attempt !== undefined) return attempt;
      if (!("place" in entered)) throw this.#busyError();
      await this.#pause(Math.min(limitPollMs, patienceMs));
    }
  }

  #busyError(): GatewayError | UpstreamFailure {
    const { call, admission } = this.#plan;
    if (this.#busy !== undefined) return busyError(this.#busy, { call, model: admission.model });
    return new UpstreamFailure({ kind: "overloaded", message: "every target is at its limit" });
  }

  /** A provisioned call that has to go elsewhere is a guest there like any other. */
  #wish({ target }: Candidate) {
    const { call, admission } = this.#plan;
    const { key } = call.caller;
    const isGuest =
      admission.capacityClass === "provisioned" && target.pool !== key.provisionedPool;
    const capacityClass: CapacityClass = isGuest ? "spillover" : admission.capacityClass;
    const { accountId } = key;
    return { callId: call.id, capacityClass, accountId, tokens: admission.reservedTokens };
  }
}

/** When a call's time is over, monotonic milliseconds. */
function endOf({ receivedAt, options }: Call, candidate: Candidate): number {
  const end = receivedAt + timeoutsOf(candidate).totalMs;
  return Math.min(end, options.deadlineAt ?? Infinity);
}
