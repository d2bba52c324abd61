import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { LimitDecision, TokenLimits } from "../../store/store.ts";
import { FairQueue } from "./fair-queue.ts";
import { HeldCount } from "./held-count.ts";
import { HeldPlace, type PlaceKeeper } from "./held-place.ts";
import { LeavePace } from "./leave-pace.ts";
import { OpenTurns } from "./open-turns.ts";
import { busy, type BusyReason, type EnterResult, type PlaceRequest } from "./place.ts";
import type { PoolBounds } from "./pool-bounds.ts";
import { PoolTokens, type Reservation } from "./pool-tokens.ts";
import { Waiter, type Patience, type Waited } from "./waiter.ts";

export interface PoolGateOptions {
  readonly clock: Clock;
  readonly limits: TokenLimits;
  /** In which tokens of calls without a guarantee are counted. */
  readonly scopeId: string;
  readonly bounds: () => PoolBounds;
  readonly unitsOf: (keyId: string) => number;
  /** Most that wait in one lane of the queue. */
  readonly queueLimit: () => number;
  readonly onWaited: (waited: Waited) => void;
}

/** How often those who wait are looked at though nothing seems to have happened. */
const pollMs = 1_000;
const leastPollMs = 5;

/** One pool: who holds its places, and who waits for one. */
export class PoolGate {
  readonly #options: PoolGateOptions;
  readonly #queue: FairQueue<Waiter>;
  readonly #tokens: PoolTokens;
  readonly #turns: OpenTurns;
  readonly #keeper: PlaceKeeper = {
    settle: (reservation, used) => {
      this.#tokens.settle(reservation, used);
      if (used < reservation.tokens && this.#hasWaiting()) this.serve();
    },
    takeBack: (holder) => {
      this.#held.giveBack(holder);
      this.#pace.left(this.#options.clock.monotonic());
      if (this.#hasWaiting()) this.serve();
    },
  };
  readonly #pace = new LeavePace();
  readonly #held = new HeldCount();
  #isServing = false;
  #hasToServeAgain = false;
  /** Whether the store is being asked for the tokens of who is first. */
  #isAsking = false;
  /** Something happened since that may change the answer. */
  #isAnswerOld = false;
  /** When the tokens that were refused last are free; monotonic. */
  #tokensAt = 0;
  #cancelPoll: (() => void) | undefined;

  constructor(options: PoolGateOptions) {
    this.#options = options;
    this.#queue = new FairQueue(options.queueLimit, options.unitsOf);
    this.#tokens = new PoolTokens(options);
    this.#turns = new OpenTurns(this.#queue, this.#tokens);
  }

  held(capacityClass: CapacityClass): number {
    return this.#held.of(capacityClass);
  }

  waiting(capacityClass: CapacityClass): number {
    return this.#queue.count(capacityClass);
  }

  get isIdle(): boolean {
    return this.#held.all === 0 && !this.#hasWaiting();
  }

  /** A place now or not at all; nobody overtakes who waits for the same. */
  tryEnter(request: PlaceRequest): EnterResult | Promise<EnterResult> {
    const bounds = this.#options.bounds();
    const { capacityClass } = request;
    if (capacityClass !== "provisioned" && bounds.isDedicated) return busy("full", Infinity);
    if (!this.#held.hasFree(request, bounds)) return busy("full", this.#retryAfterMs());
    if (this.#isOthersTurn(request, bounds)) return this.#othersFirst();
    const { openTokens } = bounds;
    if (capacityClass === "provisioned" || openTokens === undefined) {
      this.#held.take(request);
      return { place: new HeldPlace(this.#keeper, request, atOnce) };
    }
    return this.#tryTokens(request, openTokens);
  }

  /** As `tryEnter`, but waits for its turn. */
  async enter(request: PlaceRequest, patience: Patience): Promise<EnterResult> {
    const { signal, patienceMs } = patience;
    if (signal.aborted) return busy("left", 0);
    const entered = await this.tryEnter(request);
    if (signal.aborted) {
      if ("place" in entered) entered.place.leave();
      return busy("left", 0);
    }
    if ("place" in entered || patienceMs <= 0 || entered.retryAfterMs === Infinity) return entered;
    return this.#wait(request, patience);
  }

  /** Lets in whoever can be: after a place was given back, or bounds may have changed. */
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
      this.#keepPolling();
    }
  }

  #isOthersTurn(request: PlaceRequest, bounds: PoolBounds): boolean {
    const { capacityClass, keyId } = request;
    if (this.#queue.countBefore(capacityClass) === 0) return false;
    if (capacityClass !== "provisioned") return !this.#turns.mayPass(request, bounds.openTokens);
    // Nobody else can have the places of a key.
    return this.#queue.hasProvisioned(keyId) || !this.#held.isWithinOwn(request, bounds);
  }

  #wait(request: PlaceRequest, patience: Patience): Promise<EnterResult> {
    const { clock } = this.#options;
    const position = this.#queue.countBefore(request.capacityClass) + 1;
    const waiter = new Waiter({ request, position, since: clock.monotonic() });
    const displaced = this.#queue.add(waiter);
    if (displaced !== undefined) this.#turnAway(displaced, "queue-full", this.#retryAfterMs());
    if (waiter.isOver) return waiter.result;
    waiter.watch(patience, clock, (reason) =>
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
    this.#report(waiter, waitedMs, reason);
    // It may have been the one for whom all others waited.
    this.serve();
  }

  #report({ capacityClass }: Waiter, waitedMs: number, outcome: Waited["outcome"]): void {
    this.#options.onWaited({ capacityClass, waitedMs, outcome });
  }

  #serveProvisioned(bounds: PoolBounds): void {
    for (;;) {
      const waiter = this.#queue.nextProvisioned({
        heldBy: (keyId) => this.#held.ofKey(keyId),
        mayEnter: ({ request }) => this.#held.hasFree(request, bounds),
      });
      if (waiter === undefined) return;
      this.#held.take(waiter.request);
      this.#grant(waiter, undefined);
    }
  }

  /** In turn, as long as there are places and tokens. One question to the store at a time. */
  #serveOpen(bounds: PoolBounds): void {
    this.#isAnswerOld = this.#isAsking;
    while (!this.#isAsking && this.#queue.count("provisioned") === 0) {
      const waiter = this.#turns.next(bounds.openTokens);
      if (waiter === undefined) {
        this.#tokensAt = this.#options.clock.monotonic() + this.#turns.courtesyMs;
        return;
      }
      if (bounds.isDedicated) {
        this.#turnAway(waiter, "full", Infinity);
        continue;
      }
      if (!this.#held.hasFree(waiter.request, bounds)) return;
      this.#held.take(waiter.request);
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
        else this.#keepPolling();
      },
      (error: unknown) => {
        this.#isAsking = false;
        this.#held.giveBack(waiter.request);
        this.#queue.remove(waiter);
        waiter.fail(error);
        this.serve();
      },
    );
  }

  /** Whether it is the next one's turn. */
  #decide(waiter: Waiter, reservation: Reservation, decision: LimitDecision): boolean {
    if (decision.isAdmitted) {
      this.#tokens.granted(reservation);
      this.#grant(waiter, reservation);
      return true;
    }
    this.#held.giveBack(waiter.request);
    if (decision.freeAfterMs !== undefined) {
      this.#tokensAt = this.#options.clock.monotonic() + decision.freeAfterMs;
      return waiter.isOver;
    }
    // What never fits must not keep others waiting.
    this.#turnAway(waiter, "tokens", Infinity);
    return true;
  }

  /** Hands over a place that was taken for somebody; if they have just gone, it is given back. */
  #grant(waiter: Waiter, reservation: Reservation | undefined): void {
    const { request, position } = waiter;
    const waitedMs = this.#options.clock.monotonic() - waiter.since;
    const place = new HeldPlace(this.#keeper, request, { reservation, waitedMs, position });
    if (waiter.isOver) {
      place.leave();
      return;
    }
    this.#queue.served(waiter);
    waiter.end({ place });
    this.#report(waiter, waitedMs, "served");
  }

  #tryTokens(request: PlaceRequest, tokensPerMinute: number): EnterResult | Promise<EnterResult> {
    const courtesyMs = this.#tokens.courtesyMs(request, tokensPerMinute);
    if (courtesyMs > 0) return busy("tokens", courtesyMs);
    this.#held.take(request);
    const reservation = this.#tokens.newReservation(request);
    const finish = (decision: LimitDecision): EnterResult => {
      if (decision.isAdmitted) {
        this.#tokens.granted(reservation);
        return { place: new HeldPlace(this.#keeper, request, { ...atOnce, reservation }) };
      }
      this.#held.giveBack(request);
      // While the store was asked, somebody may have come to wait for this place.
      if (asked instanceof Promise) this.serve();
      return busy("tokens", decision.retryAfterMs ?? Infinity);
    };
    const asked = this.#tokens.ask(reservation, tokensPerMinute);
    if (!(asked instanceof Promise)) return finish(asked);
    return asked.then(finish, (error: unknown) => {
      this.#held.giveBack(request);
      this.serve();
      throw error;
    });
  }

  #hasWaiting(): boolean {
    return this.#queue.countBefore("on-demand") > 0;
  }

  /** There is a place, but it is somebody else's turn. */
  #othersFirst(): EnterResult {
    const waitMs = this.#tokensAt - this.#options.clock.monotonic();
    return waitMs > 0 ? busy("tokens", waitMs) : busy("full", this.#retryAfterMs());
  }

  #retryAfterMs(): number {
    return this.#pace.retryAfterMs(this.#queue.countBefore("on-demand"));
  }

  /** Tokens come back with time, and bounds change, without anybody leaving. */
  #keepPolling(): void {
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
    if (this.#isAsking || !this.#hasWaiting()) return;
    const waitMs = this.#tokensAt - this.#options.clock.monotonic();
    const delayMs = waitMs > 0 ? Math.min(Math.max(waitMs, leastPollMs), pollMs) : pollMs;
    this.#cancelPoll = this.#options.clock.schedule(() => this.serve(), delayMs);
  }
}

const atOnce = { reservation: undefined, waitedMs: 0, position: undefined };
