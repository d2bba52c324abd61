import type { GatewayError } from "../domain/gateway-error.ts";
import type { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { CapacityClass } from "../domain/usage.ts";
import type { Admission } from "./admit.ts";
import type { Call } from "./call.ts";
import { busyError } from "./capacity/busy-error.ts";
import type { BusyPool, EnterResult, PlaceRequest } from "./capacity/place.ts";
import { atLimit, noTarget } from "./failed-attempt.ts";
import type { Meter } from "./meter.ts";
import type { Candidate } from "./routing/candidates.ts";
import { RunningAttempt } from "./running-attempt.ts";
import type { PipelineServices } from "./services.ts";
import { wait } from "./wait.ts";
import { whyEnded } from "./why-ended.ts";

export interface TurnsOptions {
  readonly call: Call;
  readonly admission: Admission;
  readonly meter: Pick<Meter, "path">;
  readonly services: Pick<PipelineServices, "capacity" | "health" | "clock">;
}

/** How often a call looks again whether a target that is at its limit takes it. */
const limitPollMs = 25;
/** How long a provisioned call waits for a place at least. */
const leastPatienceMs = 2_000;

/** The candidates of one call: whose turn it is, and where an attempt can begin. */
export class CandidateTurns {
  readonly #plan: TurnsOptions;
  #candidates: readonly Candidate[];
  /** Since all had their turn, or were found busy. */
  readonly #tried = new Set<Candidate>();
  readonly #triesAt = new Map<Candidate, number>();
  #attempts = 0;
  /** Where a place will be free soonest. */
  #busy: FoundBusy | undefined;

  constructor(candidates: readonly Candidate[], options: TurnsOptions) {
    this.#plan = options;
    this.#candidates = candidates;
  }

  /** Of this call, at all candidates. */
  get attempts(): number {
    return this.#attempts;
  }

  triesAt(candidate: Candidate): number {
    return this.#triesAt.get(candidate) ?? 0;
  }

  get hasOther(): boolean {
    return this.#candidates.some((other) => !this.#tried.has(other));
  }

  get foundBusy(): boolean {
    return this.#busy !== undefined;
  }

  leaveOut(candidate: Candidate): void {
    this.#candidates = this.#candidates.filter((other) => other !== candidate);
    this.#tried.delete(candidate);
  }

  /** After a wait all targets have their turn again, but for those that asked for a longer one. */
  giveTurnsAgain(waitedFor: Candidate): void {
    const { health } = this.#plan.services;
    this.#tried.clear();
    for (const other of this.#candidates) {
      const isPaused = health.view(other.target.id).pausedForMs > 0;
      if (isPaused && other !== waitedFor) this.#tried.add(other);
    }
  }

  /** Begins at the first candidate that has not had its turn and has a place now. */
  async next(terms: Terms = anyTerms): Promise<RunningAttempt | undefined> {
    for (const candidate of this.#candidates) {
      if (this.#tried.has(candidate)) continue;
      const attempt = await this.begin(candidate, terms);
      if (attempt !== undefined || !terms.isWanted()) return attempt;
    }
    return undefined;
  }

  async begin(candidate: Candidate, terms = anyTerms): Promise<RunningAttempt | undefined> {
    const { call, services } = this.#plan;
    this.#tried.add(candidate);
    const entering = services.capacity.tryEnter(candidate, this.#wish(candidate), call.snapshot);
    const entered = entering instanceof Promise ? await entering : entering;
    if (terms.isWanted()) return this.#enter(candidate, entered, terms);
    this.#tried.delete(candidate);
    if ("place" in entered) entered.place.leave();
    return undefined;
  }

  #enter(
    candidate: Candidate,
    entered: EnterResult,
    { mayBegin }: Terms = anyTerms,
  ): RunningAttempt | undefined {
    const { call, meter, services } = this.#plan;
    // The limiter and the queue take their time; nothing begins for a caller that left meanwhile.
    if (call.signal.aborted) {
      if ("place" in entered) entered.place.leave();
      throw whyEnded(call.signal);
    }
    if (!("place" in entered)) {
      const isSooner = entered.retryAfterMs < (this.#busy?.pool.retryAfterMs ?? Infinity);
      if (this.#busy === undefined || isSooner) this.#busy = { pool: entered, candidate };
      return undefined;
    }
    const { place } = entered;
    // What was sold is not held to what others have made of the target.
    const isGuaranteed = this.classAt(candidate) === "provisioned";
    const { hasToServe = false } = candidate;
    const watch = services.health.tryBegin(candidate.target, { hasToServe, isGuaranteed });
    if (watch === undefined || !mayBegin()) {
      watch?.ended("left");
      place.leave();
      return undefined;
    }
    const { clock } = services;
    const { receivedAt } = call;
    const attempt = new RunningAttempt({ candidate, place, watch, clock, receivedAt });
    this.#attempts += 1;
    this.#triesAt.set(candidate, (this.#triesAt.get(candidate) ?? 0) + 1);
    meter.path.began(attempt);
    return attempt;
  }

  /** Waits where a place will be free soonest, where all candidates were found busy. */
  async queue(): Promise<RunningAttempt> {
    const { call, services } = this.#plan;
    const candidate = this.#busy?.candidate ?? this.#candidates[0];
    if (candidate === undefined) throw noTarget(this.#plan.admission.model);
    const end = services.clock.monotonic() + this.#patienceMs();
    for (;;) {
      const patienceMs = end - services.clock.monotonic();
      if (patienceMs <= 0) throw this.busyError();
      const entered = await services.capacity.enter(candidate, {
        ...this.#wish(candidate),
        snapshot: call.snapshot,
        signal: call.signal,
        patienceMs,
      });
      this.#busy = undefined;
      const attempt = this.#enter(candidate, entered);
      if (attempt !== undefined) return attempt;
      if (!("place" in entered)) throw this.busyError();
      await wait(Math.min(limitPollMs, patienceMs), call.signal, services.clock);
      if (call.signal.aborted) throw whyEnded(call.signal);
    }
  }

  /** Provisioned calls wait a little, whatever their plan says, for places that others had first. */
  #patienceMs(): number {
    const { call, admission } = this.#plan;
    const ofPlan = call.snapshot.plans.get(call.caller.key.plan)?.queueTimeoutMs ?? 0;
    return admission.capacityClass === "provisioned" ? Math.max(ofPlan, leastPatienceMs) : ofPlan;
  }

  busyError(): GatewayError | UpstreamFailure {
    const { call, admission } = this.#plan;
    if (this.#busy === undefined) return atLimit();
    return busyError(this.#busy.pool, { call, model: admission.model });
  }

  #wish(candidate: Candidate): PlaceRequest {
    const { call, admission } = this.#plan;
    const { accountId } = call.caller.key;
    const capacityClass = this.classAt(candidate);
    return { callId: call.id, capacityClass, accountId, tokens: admission.reservedTokens };
  }

  /** A provisioned call that has to go elsewhere is a guest there like any other. */
  classAt({ target }: Candidate): CapacityClass {
    const { call, admission } = this.#plan;
    const { capacityClass } = admission;
    const isGuest = target.pool !== call.caller.key.provisionedPool;
    return capacityClass === "provisioned" && isGuest ? "spillover" : capacityClass;
  }
}

/** Under which an attempt is made that not everybody has to want. */
export interface Terms {
  /** Asked after each wait. */
  readonly isWanted: () => boolean;
  /** Asked last, when there is a place. */
  readonly mayBegin: () => boolean;
}

const anyTerms: Terms = { isWanted: () => true, mayBegin: () => true };

interface FoundBusy {
  readonly pool: BusyPool;
  readonly candidate: Candidate;
}
