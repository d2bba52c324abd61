import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { busyError } from "../../admission/capacity/busy-error.ts";
import {
  type BusyPool,
  type EnterResult,
  type Place,
  type PlaceRequest,
} from "../../admission/capacity/place.ts";
import { atLimit, noTarget } from "./failed-attempt.ts";
import { describeOut } from "../../routing/target-view.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { Attempt } from "./attempt.ts";
import { whenKnown, whyEnded } from "../../domain/waiting/wait.ts";
import type { AttemptWatch } from "../../routing/health/target-health.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Admission } from "../../admission/admit.ts";
import type { Meter } from "../metering/meter.ts";
import type { CallServices } from "../services.ts";
import { type CallWork, candidatesOf } from "./call-candidates.ts";

/** A promise only where another process gives places, or has the budget of retries. */
type Beginning = Attempt | undefined | Promise<Attempt | undefined>;

const nowhere = { place: undefined, at: -1 };

/**
 * The candidates of one call and whose turn it is. They are listed again for each further attempt,
 * since the state of targets changes.
 */
export class CandidateTurns {
  readonly #plan: TurnsOptions;
  readonly #request: PlaceRequest;
  /** Those of the beginning. */
  readonly #all: readonly Candidate[];
  #candidates: readonly Candidate[];
  /** Targets that were tried, or found busy, since the last reset. Lists, as there are a few. */
  #tried: string[] = [];
  /** The targets of its attempts. */
  readonly #begun: string[] = [];
  readonly #leftOut: string[] = [];
  /** The largest context window that was too small. */
  #tooSmallWindow = 0;
  /** The pool that will have a free place first. */
  #busy: BusyPool | undefined;

  constructor(candidates: readonly Candidate[], options: TurnsOptions) {
    const { call, admission } = options;
    const { id: keyId, accountId, provisionedPool } = call.caller.key;
    const { capacityClass, reservedTokens: tokens } = admission;
    this.#plan = options;
    this.#request = { callId: call.id, keyId, accountId, capacityClass, provisionedPool, tokens };
    this.#all = this.#candidates = candidates;
  }

  /** Attempts of this call at all candidates. */
  get attempts(): number {
    return this.#begun.length;
  }

  /** Number of targets when the call began. */
  get count(): number {
    return new Set(this.#all.map(({ target }) => target.id)).size;
  }

  triesAt({ target }: Candidate): number {
    let tries = 0;
    for (const id of this.#begun) if (id === target.id) tries += 1;
    return tries;
  }

  /**
   * Whether another target may be tried at once after a failed one. A target that is out is no
   * alternative to one in service.
   */
  hasOther(failed?: Candidate): boolean {
    const hasToBeReady = this.#isReady(failed);
    for (const { target, isReady } of this.#candidates) {
      if (target.id === failed?.target.id || this.#tried.includes(target.id)) continue;
      if (isReady || !hasToBeReady) return true;
    }
    return false;
  }

  /** Filters the candidates to try at once after a failed one. */
  betterThan(failed: Candidate | undefined): (candidate: Candidate) => boolean {
    const hasToBeReady = this.#isReady(failed);
    return ({ isReady }) => isReady || !hasToBeReady;
  }

  /** Whether the candidate is in service by now. */
  #isReady(candidate: Candidate | undefined): boolean {
    if (candidate === undefined) return false;
    for (const { target, isReady } of this.#candidates) {
      if (target.id === candidate.target.id) return isReady;
    }
    return false;
  }

  /** Whether another target is in service, tried or not. */
  isOtherInService({ target }: Candidate): boolean {
    return this.#candidates.some((other) => other.isReady && other.target.id !== target.id);
  }

  get foundBusy(): boolean {
    return this.#busy !== undefined;
  }

  refresh(): void {
    this.#candidates = candidatesOf(this.#plan).candidates.filter(({ target, model }) => {
      return !this.#leftOut.includes(target.id) && model.contextWindow > this.#tooSmallWindow;
    });
  }

  leaveOut({ target }: Candidate): void {
    this.#leftOut.push(target.id);
    this.refresh();
  }

  /** The request is too long for the candidate and for all with no larger window. */
  leaveOutTooSmall({ model }: Candidate): void {
    this.#tooSmallWindow = Math.max(this.#tooSmallWindow, model.contextWindow);
    this.refresh();
  }

  /** Resets all turns after a wait, except of targets that still refuse. */
  resetTurns(waitedFor: Candidate | undefined): void {
    this.#tried = [];
    for (const { target, isRefusing } of this.#candidates) {
      if (isRefusing && target.id !== waitedFor?.target.id) this.#tried.push(target.id);
    }
  }

  /** The first attempt: lists again if targets filled up in between, and waits if all are busy. */
  first(): Attempt | Promise<Attempt> {
    const beginning = this.next();
    if (beginning instanceof Attempt) return beginning;
    return whenKnown(beginning, (attempt) => attempt ?? this.#firstLater());
  }

  async #firstLater(): Promise<Attempt> {
    return (this.foundBusy ? undefined : await this.#relisted()) ?? (await this.#queue());
  }

  #relisted(): Beginning {
    this.refresh();
    this.#tried = [];
    return this.next();
  }

  /** Begins at the first candidate that has its turn left and a free place. */
  next(terms: Terms = anyTerms): Beginning {
    const fit = this.#candidates.filter(
      (candidate) => !this.#tried.includes(candidate.target.id) && terms.isFit(candidate),
    );
    const beginning = this.#nextOf(fit, terms);
    if (!terms.keepsTurn) return beginning;
    return whenKnown(beginning, (attempt) => {
      if (attempt !== undefined) return attempt;
      this.#tried = this.#tried.filter((id) => !fit.some(({ target }) => target.id === id));
      return undefined;
    });
  }

  #nextOf(fit: readonly Candidate[], terms: Terms): Beginning {
    if (fit.length === 0) return undefined;
    const entered = this.#enter(fit, 0);
    return entered instanceof Promise
      ? entered.then((late) => this.#beginOrNext(fit, late, terms))
      : this.#beginOrNext(fit, entered, terms);
  }

  /** A place without an attempt at it goes back; the candidates after it are asked then. */
  #beginOrNext(fit: readonly Candidate[], entered: EnterResult, terms: Terms): Beginning {
    const attempt = this.#beginAt(fit, entered, terms);
    if (attempt !== undefined || !("place" in entered) || !terms.isWanted()) return attempt;
    return this.#nextOf(fit.slice(entered.at + 1), terms);
  }

  /** Begins at this candidate, whether it has its turn left or not. */
  async begin(candidate: Candidate, terms: Terms): Promise<Attempt | undefined> {
    return this.#beginAt([candidate], await this.#enter([candidate], 0), terms);
  }

  #enter(candidates: readonly Candidate[], waitMs: number): EnterResult | Promise<EnterResult> {
    const { snapshot, signal } = this.#plan.call;
    const ask = { request: this.#request, candidates, snapshot, signal, waitMs };
    return this.#plan.services.capacity.enter(ask);
  }

  /** Begins at the candidate that gave a place, and notes why those before it gave none. */
  #beginAt(
    candidates: readonly Candidate[],
    entered: EnterResult,
    terms: Terms,
  ): Attempt | undefined {
    const { signal } = this.#plan.call;
    const { place, at } = "place" in entered ? entered : nowhere;
    // The caller may have left while the limiter or the queue took time.
    if (!terms.isWanted() || signal.aborted) {
      place?.leave();
      if (terms.isWanted()) throw whyEnded(signal);
      return undefined;
    }
    let index = 0;
    for (const candidate of candidates) {
      const refused = entered.refused[index];
      if (refused !== undefined) this.#noteBusy(candidate, refused);
      if (refused !== undefined || index === at) this.#tried.push(candidate.target.id);
      if (place !== undefined && index === at) return this.#attempt(candidate, place, terms);
      index += 1;
    }
    return undefined;
  }

  #noteBusy(candidate: Candidate, refused: BusyPool): void {
    const { path } = this.#plan.meter;
    if (refused.busy === "limit") return path.skipped(candidate, "it is at its concurrency limit");
    const isSooner = refused.retryAfterMs < (this.#busy?.retryAfterMs ?? Infinity);
    if (this.#busy === undefined || isSooner) this.#busy = refused;
    path.skipped(candidate, "its pool is busy");
  }

  /** Begins an attempt with the place, or gives it back. */
  #attempt(candidate: Candidate, place: Place, terms: Terms): Attempt | undefined {
    const watch = this.#watch(candidate);
    // The other attempt may have answered while a place was asked for.
    const mayBegin =
      watch !== undefined &&
      terms.isWanted() &&
      terms.mayBegin() &&
      this.#isInBudget(candidate, terms.isPaid);
    if (mayBegin) return this.#running(candidate, place, watch);
    watch?.ended("left");
    place.leave();
    return undefined;
  }

  #running(candidate: Candidate, place: Place, watch: AttemptWatch): Attempt {
    const attempt = new Attempt(this.#plan, { candidate, place, watch, number: this.attempts });
    this.#begun.push(candidate.target.id);
    this.#plan.meter.path.began(attempt);
    return attempt;
  }

  #watch(candidate: Candidate) {
    const { call, work, meter, services } = this.#plan;
    const watch = services.health.tryBegin(candidate.target, {
      key: call.caller.key.id,
      account: call.caller.key.accountId,
      isStreamed: work.isStreamed,
      hasToServe: !candidate.isReady,
    });
    if (watch === undefined) {
      const view = services.health.view(candidate.target.id, call.caller.key.id);
      meter.path.skipped(candidate, `it is ${describeOut(view)}`);
    }
    return watch;
  }

  /** Not budgeted: the first attempt of a call, and the first try at a target in service. */
  #isInBudget(candidate: Candidate, isPaid: boolean): boolean {
    if (isPaid) return true;
    const { retries } = this.#plan.services.budget;
    const { id } = candidate.target;
    const isExtra = this.triesAt(candidate) > 0 || (this.attempts > 0 && !candidate.isReady);
    if (!isExtra) {
      retries.began(id);
      return true;
    }
    const isTaken = retries.tryTake(id, this.#request.keyId);
    if (!isTaken) this.#plan.meter.path.skipped(candidate, "its retry budget is used up");
    return isTaken;
  }

  /** Waits for a place at any of the candidates, all of which were busy. */
  async #queue(): Promise<Attempt> {
    const { call, admission, meter, services } = this.#plan;
    const { clock } = services;
    const startedAt = clock.monotonic();
    meter.path.waits(startedAt - call.receivedAt);
    const end = startedAt + queueTimeoutMs(call, admission.capacityClass);
    for (;;) {
      if (this.#candidates.length === 0) throw noTarget(admission.model);
      const waitMs = end - clock.monotonic();
      if (waitMs <= 0) throw this.busyError();
      const candidates = this.#candidates;
      const entered = await this.#enter(candidates, waitMs);
      if (!("place" in entered)) {
        const [ended] = entered.refused;
        // A wait for concurrency limits only is not a wait for a pool.
        if (this.foundBusy || ended?.busy !== "deadline") this.#busy = ended;
        throw this.busyError();
      }
      this.#busy = undefined;
      // The target may be out since the wait began.
      const attempt = this.#beginAt(candidates, entered, anyTerms) ?? (await this.#relisted());
      if (attempt !== undefined) return attempt;
    }
  }

  busyError(): GatewayError | UpstreamFailure {
    const { call, admission } = this.#plan;
    if (this.#busy === undefined) return atLimit();
    return busyError(this.#busy, { call, model: admission.model });
  }
}

/** Minimum time that a provisioned call waits for a place. */
const leastQueueMs = 2_000;

/** Provisioned calls wait for a minimum time, until other calls have left their places. */
function queueTimeoutMs(call: Call, capacityClass: CapacityClass): number {
  const ofPlan = call.snapshot.plans.get(call.caller.key.plan)?.queueTimeoutMs ?? 0;
  return capacityClass === "provisioned" ? Math.max(ofPlan, leastQueueMs) : ofPlan;
}

/** The call that takes turns, and what it needs for them. */
interface TurnsOptions {
  readonly call: Call;
  readonly admission: Admission;
  readonly work: Pick<
    CallWork<unknown>,
    "check" | "isTagged" | "continues" | "session" | "isStreamed"
  >;
  readonly meter: Meter;
  readonly services: CallServices;
}

/** Conditions of an attempt. */
interface Terms {
  /** Filters the candidates. */
  readonly isFit: (candidate: Candidate) => boolean;
  /** Checked after each wait. */
  readonly isWanted: () => boolean;
  /** Checked last, once there is a place. */
  readonly mayBegin: () => boolean;
  /** The retry was already taken from a budget. */
  readonly isPaid: boolean;
  /** A candidate that has no room keeps its turn. */
  readonly keepsTurn: boolean;
}

export const anyTerms: Terms = {
  isFit: () => true,
  isWanted: () => true,
  mayBegin: () => true,
  isPaid: false,
  keepsTurn: false,
};
