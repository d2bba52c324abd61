import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Admission } from "../../admission/admit.ts";
import type { Call } from "../../snapshot/call.ts";
import { busyError } from "../../admission/capacity/busy-error.ts";
import type { BusyPool, EnterResult, PlaceRequest } from "../../admission/capacity/place.ts";
import { atLimit, noTarget } from "./failed-attempt.ts";
import type { Meter } from "../metering/meter.ts";
import type { CallWork } from "../call-work.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { RunningAttempt } from "./running-attempt.ts";
import type { CallServices } from "../services.ts";
import { anyTerms, type Terms } from "./turn-terms.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { whyEnded } from "../../domain/waiting/why-ended.ts";

export interface TurnsOptions {
  /** Lists the current candidates, best first. */
  readonly list: () => readonly Candidate[];
  readonly call: Call;
  readonly admission: Admission;
  readonly work: Pick<CallWork<unknown>, "isStreamed">;
  readonly meter: Pick<Meter, "path">;
  readonly services: Pick<CallServices, "capacity" | "health" | "budget" | "clock">;
}

/** How often a call checks whether a target at its limit has room again. */
const limitPollMs = 25;
/** Minimum time that a provisioned call waits for a place. */
const leastQueueMs = 2_000;

/**
 * The candidates of one call, and whose turn it is. They are listed anew for each further attempt,
 * since the state of targets changes.
 */
export class CandidateTurns {
  readonly #plan: TurnsOptions;
  readonly #count: number;
  #candidates: readonly Candidate[];
  /** Turns that were used, or found busy, since the last reset. */
  readonly #tried = new Set<string>();
  readonly #triesAt = new Map<string, number>();
  readonly #leftOut = new Set<string>();
  /** The largest context window that was too small. */
  #tooSmallWindow = 0;
  #attempts = 0;
  /** The pool that will have a free place soonest. */
  #busy: FoundBusy | undefined;

  constructor(candidates: readonly Candidate[], options: TurnsOptions) {
    this.#plan = options;
    this.#candidates = candidates;
    this.#count = new Set(candidates.map(({ target }) => target.id)).size;
  }

  /** Attempts of this call at all candidates. */
  get attempts(): number {
    return this.#attempts;
  }

  /** Number of targets when the call began. */
  get count(): number {
    return this.#count;
  }

  triesAt({ target }: Candidate): number {
    return this.#triesAt.get(target.id) ?? 0;
  }

  /**
   * Whether another target may be tried at once after a failed one. An ejected or paused target is
   * no alternative to one in service.
   */
  hasOther(failed?: Candidate): boolean {
    const isFit = this.betterThan(failed);
    return this.#candidates.some(
      (other) =>
        !this.#tried.has(other.turn) && other.target.id !== failed?.target.id && isFit(other),
    );
  }

  /** Filters the candidates to try at once after a failed one. */
  betterThan(failed: Candidate | undefined): (candidate: Candidate) => boolean {
    const current = this.#candidates.find(({ target }) => target.id === failed?.target.id);
    return current?.isReady === true ? ({ isReady }) => isReady : () => true;
  }

  /** Whether another target is neither ejected nor paused, tried or not. */
  isOtherInService({ target }: Candidate): boolean {
    return this.#candidates.some((other) => other.isReady && other.target.id !== target.id);
  }

  get foundBusy(): boolean {
    return this.#busy !== undefined;
  }

  refresh(): void {
    this.#candidates = this.#plan.list().filter(({ target, model }) => {
      return !this.#leftOut.has(target.id) && model.contextWindow > this.#tooSmallWindow;
    });
  }

  leaveOut({ target }: Candidate): void {
    this.#leftOut.add(target.id);
    this.refresh();
  }

  /** The request is too long for the candidate and for all with no larger window. */
  leaveOutTooSmall({ model }: Candidate): void {
    this.#tooSmallWindow = Math.max(this.#tooSmallWindow, model.contextWindow);
    this.refresh();
  }

  /** Resets all turns after a wait, except of targets that are still paused. */
  resetTurns(waitedFor: Candidate | undefined): void {
    this.#tried.clear();
    for (const { target, isPaused, turn } of this.#candidates) {
      if (isPaused && target.id !== waitedFor?.target.id) this.#tried.add(turn);
    }
  }

  /** Like `next`, for the first attempt: lists again if targets filled up in between. */
  async first(): Promise<RunningAttempt | undefined> {
    const attempt = await this.next();
    if (attempt !== undefined || this.foundBusy) return attempt;
    this.refresh();
    this.#tried.clear();
    return this.next();
  }

  /** Begins at the first candidate that has its turn left and a free place. */
  async next(terms: Terms = anyTerms): Promise<RunningAttempt | undefined> {
    const refused: string[] = [];
    for (const candidate of this.#candidates) {
      if (this.#tried.has(candidate.turn) || !terms.isFit(candidate)) continue;
      const attempt = await this.begin(candidate, terms);
      if (attempt !== undefined || !terms.isWanted()) return attempt;
      if (terms.keepsTurn) refused.push(candidate.turn);
    }
    for (const turn of refused) this.#tried.delete(turn);
    return undefined;
  }

  async begin(candidate: Candidate, terms = anyTerms): Promise<RunningAttempt | undefined> {
    const { call, services } = this.#plan;
    this.#tried.add(candidate.turn);
    const entering = services.capacity.tryEnter(candidate, this.#wish(candidate), call.snapshot);
    const entered = entering instanceof Promise ? await entering : entering;
    if (terms.isWanted()) return this.#enter(candidate, entered, terms);
    this.#tried.delete(candidate.turn);
    if ("place" in entered) entered.place.leave();
    return undefined;
  }

  #enter(
    candidate: Candidate,
    entered: EnterResult,
    { mayBegin, isPaid }: Terms = anyTerms,
  ): RunningAttempt | undefined {
    const { call, meter, services } = this.#plan;
    // The caller may have left while the limiter or the queue took time.
    if (call.signal.aborted) {
      if ("place" in entered) entered.place.leave();
      throw whyEnded(call.signal);
    }
    if (!("place" in entered)) {
      const isSooner = entered.retryAfterMs < (this.#busy?.pool.retryAfterMs ?? Infinity);
      if (this.#busy === undefined || isSooner) this.#busy = { pool: entered, candidate };
      meter.path.skipped(candidate, "its pool is busy");
      return undefined;
    }
    const { place } = entered;
    const watch = this.#watch(candidate);
    if (watch === undefined || !mayBegin() || !this.#isInBudget(candidate, isPaid)) {
      watch?.ended("left");
      place.leave();
      return undefined;
    }
    const { clock } = services;
    const { receivedAt } = call;
    const hasHooks = call.hooks !== undefined;
    const parts = { candidate, place, watch, clock, receivedAt, hasHooks };
    const attempt = new RunningAttempt(parts);
    this.#attempts += 1;
    this.#triesAt.set(candidate.target.id, this.triesAt(candidate) + 1);
    meter.path.began(attempt);
    return attempt;
  }

  #watch(candidate: Candidate) {
    const { call, work, meter, services } = this.#plan;
    const watch = services.health.tryBegin(candidate.target, {
      key: call.caller.key.id,
      isStreamed: work.isStreamed,
      hasToServe: candidate.hasToServe,
      // Provisioned calls are exempt from slow start and concurrency limit.
      isGuaranteed: this.classAt(candidate) === "provisioned",
    });
    if (watch === undefined) meter.path.skipped(candidate, this.#whyClosed(candidate));
    return watch;
  }

  #whyClosed({ target }: Candidate): string {
    const { call, services } = this.#plan;
    const view = services.health.view(target.id, call.caller.key.id);
    if (view.isEjected) return `it was ejected: ${view.because}`;
    if (view.pausedForMs > 0) return "it was paused, as its provider asked";
    if (view.inFlight + 1 > view.limit) return "it is at its concurrency limit";
    return "it came back a moment ago and starts slowly";
  }

  /** Free: the first attempt of a call, and the first try at a target in service. */
  #isInBudget(candidate: Candidate, isPaid: boolean): boolean {
    if (isPaid) return true;
    const { retries } = this.#plan.services.budget;
    const { id } = candidate.target;
    const isExtra = this.triesAt(candidate) > 0 || (this.#attempts > 0 && !candidate.isReady);
    if (!isExtra) retries.began(id);
    else if (!retries.tryTake(id)) {
      this.#plan.meter.path.skipped(candidate, "its retry budget is used up");
      return false;
    }
    return true;
  }

  /** Waits for a place at one of the candidates, all of which were busy. */
  async queue(): Promise<RunningAttempt> {
    const { clock } = this.#plan.services;
    const end = clock.monotonic() + this.#queueTimeoutMs();
    for (;;) {
      if (this.#candidates.length === 0) throw noTarget(this.#plan.admission.model);
      const waitMs = end - clock.monotonic();
      if (waitMs <= 0) throw this.busyError();
      const busy = this.#busy?.candidate;
      const attempt = await (busy === undefined ? this.#poll(waitMs) : this.#queueAt(busy, waitMs));
      if (attempt !== undefined) return attempt;
    }
  }

  /** Queues where a place will be free soonest; the target may be at its limit even then. */
  async #queueAt(candidate: Candidate, waitMs: number): Promise<RunningAttempt | undefined> {
    const { call, services } = this.#plan;
    const entered = await services.capacity.enter(candidate, {
      ...this.#wish(candidate),
      snapshot: call.snapshot,
      signal: call.signal,
      waitMs,
    });
    this.#busy = undefined;
    const attempt = this.#enter(candidate, entered);
    if (attempt === undefined && !("place" in entered)) throw this.busyError();
    return attempt;
  }

  async #poll(waitMs: number): Promise<RunningAttempt | undefined> {
    const { call, services } = this.#plan;
    await wait(Math.min(limitPollMs, waitMs), call.signal, services.clock);
    if (call.signal.aborted) throw whyEnded(call.signal);
    this.refresh();
    this.#tried.clear();
    return this.next();
  }

  /** Provisioned calls wait for a minimum time, until other calls have left their places. */
  #queueTimeoutMs(): number {
    const { call, admission } = this.#plan;
    const ofPlan = call.snapshot.plans.get(call.caller.key.plan)?.queueTimeoutMs ?? 0;
    return admission.capacityClass === "provisioned" ? Math.max(ofPlan, leastQueueMs) : ofPlan;
  }

  busyError(): GatewayError | UpstreamFailure {
    const { call, admission } = this.#plan;
    if (this.#busy === undefined) return atLimit();
    return busyError(this.#busy.pool, { call, model: admission.model });
  }

  #wish(candidate: Candidate): PlaceRequest {
    const { id: callId, caller } = this.#plan.call;
    const { id: keyId, accountId } = caller.key;
    const { reservedTokens: tokens } = this.#plan.admission;
    return { callId, capacityClass: this.classAt(candidate), keyId, accountId, tokens };
  }

  /** A provisioned call counts as spillover outside its own pool. */
  classAt({ target }: Candidate): CapacityClass {
    const { call, admission } = this.#plan;
    const { capacityClass } = admission;
    const isGuest = target.pool !== call.caller.key.provisionedPool;
    return capacityClass === "provisioned" && isGuest ? "spillover" : capacityClass;
  }
}

interface FoundBusy {
  readonly pool: BusyPool;
  readonly candidate: Candidate;
}
