import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { LimitDecision, TokenLimits } from "../../store/store.ts";
import { FairQueue } from "../places/queue/fair-queue.ts";
import type { PlaceKeeper } from "./held-place.ts";
import { GatePoll } from "./gate-poll.ts";
import { LeavePace } from "./leave-pace.ts";
import { OpenTurns } from "./open-turns.ts";
import {
  busy,
  type BusyReason,
  type EnterResult,
  type PlaceRequest,
  type PlaceWait,
} from "./place.ts";
import type { PoolBounds } from "./pool-bounds.ts";
import { PoolPlaces } from "./pool-places.ts";
import { PoolTokens, type Reservation } from "./pool-tokens.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";
import { Waiter, type Waited } from "./waiter.ts";

export interface PoolGateOptions {
  readonly clock: Clock;
  readonly limits: TokenLimits;
  /** The scope of the tokens of calls without a guarantee. */
  readonly scopeId: string;
  readonly bounds: () => PoolBounds;
  readonly unitsOf: (keyId: string) => number;
  /** Whether the limits of upstreams do not apply to calls within guarantees. */
  readonly passesUpstreams: boolean;
  /** Most calls in one lane of the queue. */
  readonly queueLimit: () => number;
  readonly onWaited: (waited: Waited) => void;
}

/** One pool: the calls that hold its places, and the calls that wait for one. */
export class PoolGate {
  readonly #options: PoolGateOptions;
  readonly #queue: FairQueue<Waiter>;
  readonly #tokens: PoolTokens;
  readonly #turns: OpenTurns;
  readonly #keeper: PlaceKeeper = {
    isBound: ({ capacityClass }) =>
      capacityClass !== "provisioned" || !this.#options.passesUpstreams,
    settle: (reservation, used) => {
      this.#tokens.settle(reservation, used);
      if (used < reservation.tokens && this.#hasWaiting()) this.serve();
    },
    takeBack: (holder) => {
      this.#places.held.giveBack(holder);
      this.#pace.left(this.#options.clock.monotonic());
      if (this.#hasWaiting()) this.serve();
    },
  };
  readonly #serve = (): void => this.serve();
  readonly #places: PoolPlaces;
  readonly #pace = new LeavePace();
  #isServing = false;
  #hasToServeAgain = false;
  /** Whether a request for the first call's tokens is pending at the store. */
  #isAsking = false;
  /** Whether an event since that request may change the answer. */
  #isAnswerOld = false;
  readonly #poll: GatePoll;

  constructor(options: PoolGateOptions) {
    this.#options = options;
    this.#queue = new FairQueue(options.queueLimit, options.unitsOf);
    this.#tokens = new PoolTokens(options);
    this.#turns = new OpenTurns(this.#queue, this.#tokens);
    this.#poll = new GatePoll(options.clock, this.#serve);
    this.#places = new PoolPlaces({ keeper: this.#keeper, onRoom: this.#serve });
  }

  held(capacityClass: CapacityClass): number {
    return this.#places.held.of(capacityClass);
  }

  waiting(capacityClass: CapacityClass): number {
    return this.#queue.count(capacityClass);
  }

  get isIdle(): boolean {
    return this.#places.held.all === 0 && !this.#hasWaiting();
  }

  /** A place now, or none; no call overtakes calls that wait for the same places. */
  tryEnter(request: PlaceRequest, upstream: UpstreamPlaces): EnterResult | Promise<EnterResult> {
    const bounds = this.#options.bounds();
    const { capacityClass } = request;
    if (capacityClass !== "provisioned" && bounds.isDedicated) return busy("full", Infinity);
    if (!this.#places.held.hasFree(request, bounds)) return busy("full", this.#retryAfterMs());
    if (this.#isOthersTurn(request, bounds)) return this.#othersFirst();
    if (!this.#places.hasUpstream(request, upstream)) return busy("full", this.#retryAfterMs());
    const { openTokens } = bounds;
    if (capacityClass === "provisioned" || openTokens === undefined) {
      this.#places.take(request, upstream);
      return { place: this.#places.place(request, upstream) };
    }
    return this.#tryTokens({ request, upstream }, openTokens);
  }

  /** As `tryEnter`, but waits for its turn. */
  async enter(wait: PlaceWait, upstream: UpstreamPlaces): Promise<EnterResult> {
    const { signal, waitMs } = wait;
    if (signal.aborted) return busy("left", 0);
    const entered = await this.tryEnter(wait, upstream);
    if (signal.aborted) {
      if ("place" in entered) entered.place.leave();
      return busy("left", 0);
    }
    if ("place" in entered || waitMs <= 0 || entered.retryAfterMs === Infinity) return entered;
    return this.#wait(wait, upstream);
  }

  /** Serves waiting calls, after a place was given back or bounds may have changed. */
  serve(): void {
    this.#hasToServeAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      const bounds = this.#options.bounds();
      while (this.#hasToServeAgain) {
        this.#hasToServeAgain = false;
        this.#serveProvisioned(bounds);
        this.#serveOpen(bounds);
      }
    } finally {
      this.#isServing = false;
      this.#poll.plan(!this.#isAsking && this.#hasWaiting());
    }
  }

  #isOthersTurn(request: PlaceRequest, bounds: PoolBounds): boolean {
    const { capacityClass, keyId } = request;
    if (this.#queue.countBefore(capacityClass) === 0) return false;
    // The waiting calls wait only for places at other upstreams.
    if (this.#turns.isUpstreamFull && this.#queue.count("provisioned") === 0) return false;
    if (capacityClass !== "provisioned") return !this.#turns.mayPass(request, bounds.openTokens);
    // No other key can have the places of a key.
    return this.#queue.hasProvisioned(keyId) || !this.#places.held.isWithinOwn(request, bounds);
  }

  #wait(request: PlaceWait, upstream: UpstreamPlaces): Promise<EnterResult> {
    const { clock } = this.#options;
    const position = this.#queue.countBefore(request.capacityClass) + 1;
    const waiter = new Waiter({ request, upstream, position, since: clock.monotonic() });
    const displaced = this.#queue.add(waiter);
    if (displaced !== undefined) this.#turnAway(displaced, "queue-full", this.#retryAfterMs());
    if (waiter.isOver) return waiter.result;
    waiter.watch(request, clock, (reason) =>
      this.#turnAway(waiter, reason, reason === "left" ? 0 : this.#retryAfterMs()),
    );
    this.serve();
    return waiter.result;
  }

  #turnAway(waiter: Waiter, reason: BusyReason, retryAfterMs: number): void {
    if (waiter.isOver) return;
    this.#queue.remove(waiter);
    const waitedMs = this.#options.clock.monotonic() - waiter.since;
    waiter.end({ busy: reason, retryAfterMs, position: waiter.position, waitedMs });
    this.#options.onWaited({ capacityClass: waiter.capacityClass, waitedMs, outcome: reason });
    // All others may have waited behind it.
    this.serve();
  }

  #serveProvisioned(bounds: PoolBounds): void {
    for (;;) {
      const waiter = this.#queue.nextProvisioned({
        heldBy: (keyId) => this.#places.held.ofKey(keyId),
        mayEnter: (waiter) =>
          this.#places.held.hasFree(waiter.request, bounds) && this.#places.mayEnter(waiter),
      });
      if (waiter === undefined) return;
      this.#places.take(waiter.request, waiter.upstream);
      this.#grant(waiter, undefined);
    }
  }

  /** In turn, as long as there are places and tokens. One request to the store at a time. */
  #serveOpen(bounds: PoolBounds): void {
    this.#isAnswerOld = this.#isAsking;
    this.#turns.stop();
    while (!this.#isAsking && this.#queue.count("provisioned") === 0) {
      const waiter = this.#turns.next(bounds.openTokens, this.#places.mayEnter);
      if (waiter === undefined) {
        this.#poll.tokensFreeIn(this.#turns.yieldMs);
        return;
      }
      if (bounds.isDedicated) {
        this.#turnAway(waiter, "full", Infinity);
        continue;
      }
      if (!this.#places.held.hasFree(waiter.request, bounds)) return;
      this.#places.take(waiter.request, waiter.upstream);
      if (bounds.openTokens === undefined) {
        this.#grant(waiter, undefined);
        continue;
      }
      const reservation = this.#tokens.newReservation(waiter.request);
      const asked = this.#tokens.ask(reservation, bounds.openTokens);
      if (asked instanceof Promise) {
        this.#answerLater(waiter, reservation, asked);
        return;
      }
      if (!this.#decide(waiter, reservation, asked)) return;
    }
  }

  #answerLater(waiter: Waiter, reservation: Reservation, asked: Promise<LimitDecision>): void {
    this.#isAsking = true;
    asked.then(
      (decision) => {
        this.#isAsking = false;
        const isNextOnesTurn = this.#decide(waiter, reservation, decision);
        if (isNextOnesTurn || this.#isAnswerOld) this.serve();
        else this.#poll.plan(!this.#isAsking && this.#hasWaiting());
      },
      (error: unknown) => {
        this.#isAsking = false;
        this.#places.giveBack(waiter.request, waiter.upstream);
        this.#queue.remove(waiter);
        waiter.fail(error);
        this.serve();
      },
    );
  }

  /** Returns whether it is the next call's turn. */
  #decide(waiter: Waiter, reservation: Reservation, decision: LimitDecision): boolean {
    if (decision.isAdmitted) {
      this.#tokens.granted(reservation);
      this.#grant(waiter, reservation);
      return true;
    }
    this.#places.giveBack(waiter.request, waiter.upstream);
    if (decision.freeAfterMs !== undefined) {
      this.#poll.tokensFreeIn(decision.freeAfterMs);
      return waiter.isOver;
    }
    // A request that never fits must not keep others waiting.
    this.#turnAway(waiter, "tokens", Infinity);
    return true;
  }

  /** Hands over a place that was taken for a call; if the call has just left, it is given back. */
  #grant(waiter: Waiter, reservation: Reservation | undefined): void {
    const { request, upstream, position } = waiter;
    const waitedMs = this.#options.clock.monotonic() - waiter.since;
    const place = this.#places.place(request, upstream).reserved(reservation);
    place.afterWait(waitedMs, position);
    if (waiter.isOver) return place.leave();
    this.#queue.served(waiter);
    waiter.end({ place });
    this.#options.onWaited({ capacityClass: request.capacityClass, waitedMs, outcome: "served" });
  }

  #tryTokens(
    { request, upstream }: Pick<Waiter, "request" | "upstream">,
    tokensPerMinute: number,
  ): EnterResult | Promise<EnterResult> {
    const yieldMs = this.#tokens.yieldMs(request, tokensPerMinute);
    if (yieldMs > 0) return busy("tokens", yieldMs);
    this.#places.take(request, upstream);
    const reservation = this.#tokens.newReservation(request);
    const finish = (decision: LimitDecision): EnterResult => {
      if (decision.isAdmitted) {
        this.#tokens.granted(reservation);
        return { place: this.#places.place(request, upstream).reserved(reservation) };
      }
      this.#places.giveBack(request, upstream);
      // A call may have come to wait for this place in the meantime.
      if (asked instanceof Promise) this.serve();
      return busy("tokens", decision.retryAfterMs ?? Infinity);
    };
    const asked = this.#tokens.ask(reservation, tokensPerMinute);
    if (!(asked instanceof Promise)) return finish(asked);
    return asked.then(finish, (error: unknown) => {
      this.#places.giveBack(request, upstream);
      this.serve();
      throw error;
    });
  }

  #hasWaiting(): boolean {
    return this.#queue.countBefore("on-demand") > 0;
  }

  /** There is a place, but it is another call's turn. */
  #othersFirst(): EnterResult {
    const waitMs = this.#poll.tokensWaitMs;
    return waitMs > 0 ? busy("tokens", waitMs) : busy("full", this.#retryAfterMs());
  }

  #retryAfterMs(): number {
    return this.#pace.retryAfterMs(this.#queue.countBefore("on-demand"));
  }
}
