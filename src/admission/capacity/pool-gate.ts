import type { Clock } from "../../domain/clock.ts";
import type { LimitDecision } from "../../store/limits/limit-store.ts";
import { FairQueue } from "./fair-queue.ts";
import { HeldPlace, type PlaceKeeper, type TakenPlaces } from "./held-place.ts";
import {
  busy,
  type BusyPool,
  classAt,
  type HolderFacts,
  type PlaceHolder,
  type PlaceRequest,
  type Spot,
} from "./place.ts";
import type { PoolBounds, PoolName } from "./pool-bounds.ts";
import { type GateUse, PoolPlaces, type PoolPlacesOptions } from "./pool-places.ts";
import type { SharedSlots } from "./shared/shared-slots.ts";
import { PoolTokens, type PoolTokensOptions, type Reservation } from "./tokens/pool-tokens.ts";
import {
  busyRetryAfterMs,
  type PlaceQueue,
  type QueueTurn,
  type Waited,
  type Waiter,
} from "./waiter.ts";

interface PoolGateOptions extends PoolTokensOptions, PoolPlacesOptions {
  readonly clock: Clock;
  readonly bounds: () => PoolBounds;
  readonly unitsOf: (keyId: string) => number;
  /** Most calls in one lane of the queue. */
  readonly queueLimit: () => number;
  readonly onWaited: (waited: Waited) => void;
  readonly place: PoolName;
  readonly shared: SharedSlots | undefined;
}

type Refused = Extract<LimitDecision, { readonly isAdmitted: false }>;

/** One pool: the calls that hold its places, and the calls that wait for one. */
export class PoolGate implements PlaceQueue {
  readonly #options: PoolGateOptions;
  readonly #queue: FairQueue<QueueTurn>;
  readonly #tokens: PoolTokens;
  /** How long the open call in turn must wait so that enough is left for lighter accounts. */
  #yieldMs = 0;
  /** Whether the pool had room for the waiting calls, but their upstreams or targets had none. */
  #isElsewhereFull = false;
  readonly #keeper: PlaceKeeper = {
    settle: (reservation, used) => {
      this.#tokens.settle(reservation, used);
      if (used < reservation.tokens) this.serve();
    },
    takeBack: (taken) => {
      this.#places.giveBackKept(taken);
      this.#options.shared?.leaving(this.#options.place);
    },
    serve: () => {
      this.serve();
      this.#options.shared?.left(this.#options.place);
    },
  };
  readonly #places: PoolPlaces;
  #isServing = false;
  #hasToServeAgain = false;
  /** Whether the store has yet to answer for the first call's tokens. */
  #isAsking = false;
  /** Whether something happened since that request that may change the answer. */
  #isAnswerOld = false;
  readonly #poll: GatePoll;

  constructor(options: PoolGateOptions) {
    this.#options = options;
    const onRoom = (): void => this.serve();
    this.#queue = new FairQueue(options.queueLimit, options.unitsOf);
    this.#tokens = new PoolTokens(options);
    this.#poll = new GatePoll(options.clock, onRoom);
    this.#places = new PoolPlaces(options, onRoom);
  }

  get use(): GateUse {
    return { places: this.#places, queue: this.#queue };
  }

  get isWaitedFor(): boolean {
    return this.#queue.countBefore("on-demand") > 0;
  }

  get heldPlaces(): number {
    return this.#places.all;
  }

  /** A place now, or none; no call overtakes calls that wait for the same places. */
  tryEnter(
    request: PlaceRequest,
    spot: Spot,
  ): HeldPlace | BusyPool | Promise<HeldPlace | BusyPool> {
    const bounds = this.#options.bounds();
    const nowMs = this.#options.clock.monotonic();
    // If a limit of the target has ended, calls that wait for it go first.
    spot.target.limitAt(nowMs);
    const holder = this.#holderOf(request);
    const isGuaranteed = holder.capacityClass === "provisioned";
    if (!isGuaranteed && bounds.isDedicated) return busy("full", Infinity);
    if (!this.#places.hasFree(holder, bounds)) return busy("full", busyRetryAfterMs);
    if (this.#isOthersTurn(request, holder, bounds)) return this.#othersFirst();
    const full = this.#places.fullAt(holder, spot, nowMs);
    if (full !== undefined) return busy(full === spot.target ? "limit" : "full", busyRetryAfterMs);
    if (isGuaranteed || bounds.openTokens === undefined) {
      return new HeldPlace(this.#keeper, this.#places.take(holder, spot));
    }
    const yieldMs = this.#tokens.yieldMs(request, bounds.openTokens);
    if (yieldMs > 0) return busy("tokens", yieldMs);
    const taken = this.#places.take(holder, spot);
    const reservation = this.#tokens.newReservation(request);
    return this.#reserve({ taken, reservation }, bounds.openTokens, this.#asBusy);
  }

  newTurn(waiter: Waiter, spots: readonly Spot[]): QueueTurn {
    const holder = this.#holderOf(waiter.request);
    const { accountId } = waiter.request;
    const position = this.#queue.countBefore(holder.capacityClass) + 1;
    return { ...holder, accountId, position, waiter, spots, queue: this };
  }

  join(turn: QueueTurn): void {
    const displaced = this.#queue.laneOf(turn).add(turn);
    displaced?.waiter.refused(displaced, "queue-full", busyRetryAfterMs);
  }

  remove(turn: QueueTurn): void {
    this.#queue.laneOf(turn).remove(turn);
  }

  onWaited(waited: Waited): void {
    this.#options.onWaited(waited);
  }

  /** Serves waiting calls, after a place was given back or bounds may have changed. */
  serve(): void {
    this.#hasToServeAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#hasToServeAgain && this.isWaitedFor) {
        this.#hasToServeAgain = false;
        const bounds = this.#options.bounds();
        this.#serveProvisioned(bounds);
        this.#serveOpen(bounds);
      }
    } finally {
      this.#isServing = false;
      this.#planPoll();
    }
  }

  #isOthersTurn(request: PlaceRequest, holder: PlaceHolder, bounds: PoolBounds): boolean {
    const { capacityClass, keyId } = holder;
    if (this.#queue.countBefore(capacityClass) === 0) return false;
    // The waiting calls wait only for places at other upstreams and targets.
    const { provisioned } = this.#queue;
    if (this.#isElsewhereFull && provisioned.size === 0) return false;
    if (capacityClass !== "provisioned") return !this.#mayPass(request, bounds.openTokens);
    // No other key can use the places of a key.
    return provisioned.groups.has(keyId) || !this.#places.isWithinOwn(holder, bounds);
  }

  #serveProvisioned(bounds: PoolBounds): void {
    for (;;) {
      const turn = this.#queue.provisioned.findLeast(
        (keyId) => this.#places.ofKey(keyId),
        (turn) => this.#places.hasFree(turn, bounds) && this.#mayEnter(turn),
      );
      const spot = turn && this.#places.spotFor(turn);
      if (turn === undefined || spot === undefined) return;
      this.#grant(turn, spot, new HeldPlace(this.#keeper, this.#places.take(turn, spot)));
    }
  }

  /** Serves calls in turn while there are places and tokens; asks the store for one at a time. */
  #serveOpen(bounds: PoolBounds): void {
    this.#isAnswerOld = this.#isAsking;
    this.#isElsewhereFull = false;
    while (!this.#isAsking && this.#queue.provisioned.size === 0) {
      const turn = this.#nextOpen(bounds.openTokens);
      const spot = turn && this.#places.spotFor(turn);
      if (turn === undefined || spot === undefined) {
        this.#poll.tokensFreeIn(this.#yieldMs);
        return;
      }
      if (bounds.isDedicated) {
        turn.waiter.refused(turn, "full", Infinity);
        continue;
      }
      if (!this.#places.hasFree(turn, bounds)) return;
      const taken = this.#places.take(turn, spot);
      if (bounds.openTokens === undefined) {
        this.#grant(turn, spot, new HeldPlace(this.#keeper, taken));
        continue;
      }
      const reservation = this.#tokens.newReservation(turn.waiter.request);
      const reserved = this.#reserve({ taken, reservation }, bounds.openTokens, asItIs);
      if (reserved instanceof Promise) return this.#answerLater(turn, spot, reserved);
      if (!this.#decide(turn, spot, reserved)) return;
    }
  }

  /**
   * The call whose turn it is, or, if that call must leave tokens to lighter accounts, the first
   * call of such an account.
   */
  #nextOpen(openTokens: number | undefined): QueueTurn | undefined {
    const { open } = this.#queue;
    this.#yieldMs = 0;
    const next = open.findAny(this.#mayEnter);
    this.#isElsewhereFull = next === undefined && open.size > 0;
    if (next === undefined || openTokens === undefined) return next;
    const yieldMs = this.#tokens.yieldMs(next.waiter.request, openTokens);
    if (yieldMs === 0) return next;
    const light = open.find(
      (turn) => this.#mayEnter(turn) && this.#tokens.isLight(turn.waiter.request, openTokens),
    );
    if (light === undefined) this.#yieldMs = yieldMs;
    return light;
  }

  /** Whether a newcomer of a lighter account may pass the queue; it never passes its own calls. */
  #mayPass(request: PlaceRequest, openTokens: number | undefined): boolean {
    if (this.#yieldMs === 0 || openTokens === undefined) return false;
    if (this.#queue.open.groups.has(request.accountId)) return false;
    return this.#tokens.isLight(request, openTokens);
  }

  #answerLater(turn: QueueTurn, spot: Spot, answer: Promise<HeldPlace | Refused>): void {
    this.#isAsking = true;
    answer.then(
      (reserved) => {
        this.#isAsking = false;
        if (this.#decide(turn, spot, reserved) || this.#isAnswerOld) this.serve();
        else this.#planPoll();
      },
      (error: unknown) => {
        this.#isAsking = false;
        turn.waiter.fail(error);
        this.serve();
      },
    );
  }

  /** Returns whether it is the next call's turn. */
  #decide(turn: QueueTurn, spot: Spot, reserved: HeldPlace | Refused): boolean {
    if (reserved instanceof HeldPlace) {
      this.#grant(turn, spot, reserved);
      return true;
    }
    if (reserved.freeAfterMs !== undefined) {
      this.#poll.tokensFreeIn(reserved.freeAfterMs);
      return turn.waiter.isOver;
    }
    // A request that never fits must not keep others waiting.
    turn.waiter.refused(turn, "tokens", Infinity);
    return true;
  }

  /** Hands over a place that was taken for a call; if its wait has just ended, it is given back. */
  #grant(turn: QueueTurn, spot: Spot, place: HeldPlace): void {
    if (turn.waiter.isOver) return place.leave();
    this.#queue.laneOf(turn).served(turn);
    turn.waiter.served(turn, place, spot);
  }

  /** Keeps the places that were taken if the store grants the tokens, else gives them back. */
  #reserve<Result>(
    { taken, reservation }: { readonly taken: TakenPlaces; readonly reservation: Reservation },
    openTokens: number,
    refused: (decision: Refused, isLate: boolean) => Result,
  ): HeldPlace | Result | Promise<HeldPlace | Result> {
    const finish = (decision: LimitDecision): HeldPlace | Result => {
      if (decision.isAdmitted) {
        this.#tokens.granted(reservation);
        return new HeldPlace(this.#keeper, taken, reservation);
      }
      this.#places.giveBack(taken);
      return refused(decision, asked instanceof Promise);
    };
    const asked = this.#tokens.ask(reservation, openTokens);
    if (!(asked instanceof Promise)) return finish(asked);
    return asked.then(finish, (error: unknown) => {
      this.#places.giveBack(taken);
      this.serve();
      throw error;
    });
  }

  readonly #asBusy = ({ retryAfterMs }: Refused, isLate: boolean): BusyPool => {
    // A call may have come to wait for this place in the meantime.
    if (isLate) this.serve();
    return busy("tokens", retryAfterMs ?? Infinity);
  };

  readonly #mayEnter = (turn: QueueTurn): boolean => this.#places.spotFor(turn) !== undefined;

  #holderOf(request: HolderFacts): PlaceHolder {
    return { capacityClass: classAt(request, this.#options.pool), keyId: request.keyId };
  }

  #planPoll(): void {
    this.#poll.plan(!this.#isAsking && this.isWaitedFor);
  }

  /** There is a place, but it is another call's turn. */
  #othersFirst(): BusyPool {
    const waitMs = this.#poll.tokensWaitMs;
    return waitMs > 0 ? busy("tokens", waitMs) : busy("full", busyRetryAfterMs);
  }
}

function asItIs(decision: Refused): Refused {
  return decision;
}

/** How often the queue is served without an event. */
const pollMs = 1_000;
const leastPollMs = 5;

/** Serves the queue again for tokens that come back with time and for changed bounds. */
class GatePoll {
  readonly #clock: Clock;
  readonly #look: () => void;
  /** When the tokens that were last refused are free, in monotonic milliseconds. */
  #tokensAt = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  /** The time left until then; 0 or less once it has passed. */
  get tokensWaitMs(): number {
    return this.#tokensAt - this.#clock.monotonic();
  }

  tokensFreeIn(waitMs: number): void {
    this.#tokensAt = this.#clock.monotonic() + waitMs;
  }

  /** Replaces the earlier plan. */
  plan(isNeeded: boolean): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (!isNeeded) return;
    const waitMs = this.tokensWaitMs;
    const delayMs = waitMs > 0 ? Math.min(Math.max(waitMs, leastPollMs), pollMs) : pollMs;
    this.#cancel = this.#clock.schedule(this.#look, delayMs);
  }
}
