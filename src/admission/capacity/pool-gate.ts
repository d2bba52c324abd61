import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { Gate, type Taking, Turn, type WaitEnd } from "../../domain/waiting/gate.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import type { LimitDecision } from "../../store/limits/limit-store.ts";
import {
  busy,
  type BusyPool,
  type BusyReason,
  classAt,
  type EnterResult,
  type Place,
  type PlaceHolder,
  type PlaceRequest,
} from "./place.ts";
import { boundsOfUpstream, type PoolBounds } from "./pool-bounds.ts";
import { PoolPlaces } from "./pool-places.ts";
import { PoolTokens, type PoolTokensOptions, type Reservation } from "./tokens/pool-tokens.ts";
import type { UpstreamPlaces } from "./upstream-places.ts";
import { UpstreamRequests } from "./upstream-requests.ts";

/** Where a call takes a place: at a target, its pool and its upstream, together. */
export interface Spot {
  readonly pool: PoolGate;
  readonly upstream: UpstreamPlaces;
  readonly target: ConcurrencyLimit;
}

/** How the wait of a call ended. It is counted for the queue that ended it. */
export interface Waited {
  readonly capacityClass: CapacityClass;
  readonly waitedMs: number;
  readonly outcome: "served" | BusyReason;
}

interface PoolGateOptions extends PoolTokensOptions {
  readonly clock: Clock;
  /** Its name; undefined for the targets of an upstream that name none. */
  readonly pool: string | undefined;
  /** Read for each newcomer, and each time that waiting calls are served. */
  readonly bounds: () => PoolBounds;
  readonly unitsOf: (keyId: string) => number;
  /** Most calls of one lane that wait. */
  readonly queueLimit: () => number;
  readonly onWaited: (waited: Waited) => void;
  /** Where several processes share the places of the pool: one was given back. */
  readonly shared: { leaving(): void; left(): void } | undefined;
}

type Refused = Extract<LimitDecision, { readonly isAdmitted: false }>;

/** When a call that finds no place may try again: a place may come back at any time. */
const busyRetryAfterMs = 1_000;
const onlyGuaranteed = busy("full", Infinity);
const fullPool = busy("full", busyRetryAfterMs);
const fullUpstream = busy("full", busyRetryAfterMs);
const limitedTarget = busy("limit", busyRetryAfterMs);

/** One pool, or the targets of an upstream that name none: which call may have a place, and when. */
export class PoolGate {
  readonly name: string | undefined;
  readonly gate: Gate;
  readonly places = new PoolPlaces();
  readonly #options: PoolGateOptions;
  readonly #tokens: PoolTokens;
  /** For the calls that wait. */
  #bounds: PoolBounds = boundsOfUpstream;
  /** Whether a waiting call lacks more than a place at its own upstream and target. */
  #isHeldUp = false;
  /** How long a waiting call must wait so that enough is left for lighter accounts. */
  #yieldMs = Infinity;
  /** Whether the store has yet to answer for the tokens of a waiting call. */
  #isAsking = false;
  /** Whether something happened since that request that may change the answer. */
  #isAnswerOld = false;

  constructor(options: PoolGateOptions) {
    const { clock, bounds, queueLimit: limit, unitsOf: weightOf, pool } = options;
    this.#options = options;
    this.name = pool;
    this.#tokens = new PoolTokens(options);
    const heldBy = (keyId: string): number => this.places.ofKey(keyId);
    const onServe = (): void => {
      this.#bounds = bounds();
      this.#isHeldUp = this.#isAsking;
      this.#isAnswerOld = this.#isAsking;
      this.#yieldMs = Infinity;
      if (!this.#isAsking) this.gate.freeAtMs = 0;
    };
    this.gate = new Gate({ clock, limit, shares: { weightOf, heldBy }, onServe });
  }

  get isIdle(): boolean {
    return this.places.all === 0 && this.gate.size === 0;
  }

  /** A place now, or none; no call overtakes calls that wait for the same places. */
  tryEnter(
    request: PlaceRequest,
    spot: Spot,
  ): HeldPlace | BusyPool | Promise<HeldPlace | BusyPool> {
    const nowMs = this.#options.clock.monotonic();
    // If a limit of the target has ended, calls that wait for it go first.
    spot.target.limitAt(nowMs);
    const bounds = this.#options.bounds();
    const { keyId } = request;
    const place = new HeldPlace(spot, { keyId, capacityClass: classAt(request, this.name) });
    const full = this.#whatIsFull(place, spot, bounds);
    if (full !== undefined) return full;
    if (this.gate.size > 0 && this.#isOthersTurn(request, place, bounds)) {
      const waitMs = this.gate.freeAtMs - nowMs;
      return waitMs > 0 ? busy("tokens", waitMs) : fullPool;
    }
    const { openTokens } = bounds;
    if (place.capacityClass === "provisioned" || openTokens === undefined) return place.take();
    const yieldMs = this.#tokens.yieldMs(request, openTokens);
    if (yieldMs > 0) return busy("tokens", yieldMs);
    const reserved = this.#reserve(place, request, openTokens);
    if (!(reserved instanceof Promise)) return placeOrBusy(reserved);
    return reserved.then((result) => {
      // A call may have come to wait for this place in the meantime.
      if (!(result instanceof HeldPlace)) this.gate.serve();
      return placeOrBusy(result);
    });
  }

  /** Takes what a waiting call needs. */
  takeFor(turn: PlaceTurn): Taking {
    const isGuaranteed = turn.capacityClass === "provisioned";
    if (this.#isAsking && !isGuaranteed) return "stop";
    for (const spot of turn.spots.keys()) {
      const full = this.#whatIsFull(turn, spot, this.#bounds);
      if (full === undefined) return this.#takeAt(spot, turn);
      if (full === onlyGuaranteed) return turn.refuse("full");
      if (full === fullPool) return this.#holdUp(isGuaranteed ? "skip" : "stop");
      if (full === limitedTarget) spot.target.waiting.add(this.gate);
      else spot.upstream.whenFree(this.gate);
    }
    return "next";
  }

  settle(reservation: Reservation, usedTokens: number): void {
    this.#tokens.settle(reservation, usedTokens);
    if (usedTokens < reservation.tokens) this.gate.serve();
  }

  /** The waiting calls are served once all places are back, so that they find them together. */
  leave(place: HeldPlace): void {
    const { shared } = this.#options;
    this.places.giveBack(place);
    shared?.leaving();
    place.release();
    this.gate.serve();
    shared?.left();
  }

  onWaited(waited: Waited): void {
    this.#options.onWaited(waited);
  }

  #whatIsFull(holder: PlaceHolder, { upstream, target }: Spot, bounds: PoolBounds) {
    const isGuaranteed = holder.capacityClass === "provisioned";
    if (!isGuaranteed && bounds.isDedicated) return onlyGuaranteed;
    if (!this.places.hasFree(holder, bounds)) return fullPool;
    if (upstream.free === 0 && isBound(holder, this)) return fullUpstream;
    const nowMs = this.#options.clock.monotonic();
    return isGuaranteed || target.hasRoom(holder.keyId, nowMs) ? undefined : limitedTarget;
  }

  #isOthersTurn(request: PlaceRequest, holder: PlaceHolder, bounds: PoolBounds): boolean {
    const { guaranteed, open } = this.gate;
    if (holder.capacityClass === "provisioned") {
      if (guaranteed.size === 0) return false;
      // No other key can use the places of a key.
      return guaranteed.groups.has(holder.keyId) || !this.places.isWithinOwn(holder, bounds);
    }
    if (guaranteed.size === 0 && !this.#isHeldUp) return false;
    // A newcomer of a lighter account may pass the queue; it never passes its own calls.
    if (this.#yieldMs === Infinity || bounds.openTokens === undefined) return true;
    return open.groups.has(request.accountId) || !this.#tokens.isLight(request, bounds.openTokens);
  }

  #takeAt(spot: Spot, turn: PlaceTurn): Taking {
    const { request } = turn;
    const { openTokens } = this.#bounds;
    const place = new HeldPlace(spot, turn);
    if (turn.capacityClass === "provisioned" || openTokens === undefined) {
      return turn.served(place.take());
    }
    const yieldMs = this.#tokens.yieldMs(request, openTokens);
    if (yieldMs > 0) {
      this.#yieldMs = Math.min(yieldMs, this.#yieldMs);
      return this.#holdUp("skip", this.#yieldMs);
    }
    const reserved = this.#reserve(place, request, openTokens);
    if (!(reserved instanceof Promise)) return this.#decide(turn, reserved);
    this.#answerLater(turn, reserved);
    return this.#holdUp("stop");
  }

  /** Takes the place, and keeps it if the store grants the tokens. */
  #reserve(
    place: HeldPlace,
    request: PlaceRequest,
    openTokens: number,
  ): HeldPlace | Refused | Promise<HeldPlace | Refused> {
    place.take();
    const reservation = this.#tokens.newReservation(request);
    const asked = this.#tokens.ask(reservation, openTokens);
    const finish = (decision: LimitDecision): HeldPlace | Refused => {
      if (decision.isAdmitted) {
        this.#tokens.granted(reservation);
        place.reservation = reservation;
        return place;
      }
      this.places.giveBack(place);
      place.release();
      return decision;
    };
    if (!(asked instanceof Promise)) return finish(asked);
    return asked.then(finish, (error: unknown) => {
      place.leave();
      throw error;
    });
  }

  #answerLater(turn: PlaceTurn, answer: Promise<HeldPlace | Refused>): void {
    this.#isAsking = true;
    answer.then(
      (reserved) => {
        this.#isAsking = false;
        const taking = this.#decide(turn, reserved);
        if (taking === "taken") this.gate.served(turn);
        if (taking !== "stop" || this.#isAnswerOld) this.gate.serve();
      },
      (error: unknown) => {
        this.#isAsking = false;
        turn.fail(error);
        this.gate.serve();
      },
    );
  }

  #decide(turn: PlaceTurn, reserved: HeldPlace | Refused): Taking {
    const isOver = turn.wait?.isOver === true;
    if (reserved instanceof HeldPlace) {
      if (!isOver) return turn.served(reserved);
      reserved.leave();
      return "next";
    }
    // A request that never fits must not keep others waiting.
    if (reserved.freeAfterMs === undefined) return turn.refuse("tokens");
    return this.#holdUp(isOver ? "next" : "stop", reserved.freeAfterMs);
  }

  /** Calls behind the one in turn have to wait, possibly until tokens are free. */
  #holdUp(taking: Taking, freeAfterMs = 0): Taking {
    this.#isHeldUp = true;
    if (freeAfterMs > 0) this.gate.freeAtMs = this.#options.clock.monotonic() + freeAfterMs;
    return taking;
  }
}

/** Whether the limits of upstreams apply: not to calls within the guarantees of a pool. */
function isBound({ capacityClass }: PlaceHolder, { name }: PoolGate): boolean {
  return capacityClass !== "provisioned" || name === undefined;
}

function placeOrBusy(reserved: HeldPlace | Refused): HeldPlace | BusyPool {
  if (reserved instanceof HeldPlace) return reserved;
  return busy("tokens", reserved.retryAfterMs ?? Infinity);
}

/** A place at a pool and a target, and at their upstream one for each request. */
export class HeldPlace extends UpstreamRequests implements Place, PlaceHolder {
  waitedMs = 0;
  position: number | undefined;
  readonly spot: Spot;
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
  /** Tokens of the pool. */
  reservation: Reservation | undefined;
  #isHeld = false;

  constructor(spot: Spot, holder: PlaceHolder) {
    super(spot.upstream, isBound(holder, spot.pool), 1);
    this.spot = spot;
    this.capacityClass = holder.capacityClass;
    this.keyId = holder.keyId;
  }

  take(): this {
    const { pool, target, upstream } = this.spot;
    pool.places.take(this);
    target.take(this.keyId);
    upstream.take();
    this.#isHeld = true;
    return this;
  }

  override release(): void {
    this.spot.target.giveBack(this.keyId);
    super.release();
  }

  settle(tokens: number): void {
    const { reservation } = this;
    if (reservation === undefined) return;
    this.reservation = undefined;
    this.spot.pool.settle(reservation, tokens);
  }

  leave(): void {
    if (!this.#isHeld) return;
    this.settle(0);
    this.#isHeld = false;
    this.spot.pool.leave(this);
  }
}

/** A call that waits at one of its pools. */
export class PlaceTurn extends Turn implements PlaceHolder {
  readonly request: PlaceRequest;
  readonly keyId: string;
  /** Where it can be served, best first, with the index of the candidate. */
  readonly spots = new Map<Spot, number>();
  readonly #pool: PoolGate;
  readonly #end: PromiseWithResolvers<EnterResult<HeldPlace>>;
  #place: HeldPlace | undefined;
  #never: BusyReason = "tokens";

  /** `end`: of the call, which may wait at other pools too. */
  constructor(
    pool: PoolGate,
    request: PlaceRequest,
    end: PromiseWithResolvers<EnterResult<HeldPlace>>,
  ) {
    const { keyId, accountId } = request;
    const capacityClass = classAt(request, pool.name);
    super(pool.gate, { capacityClass, group: capacityClass === "provisioned" ? keyId : accountId });
    this.request = request;
    this.keyId = keyId;
    this.#pool = pool;
    this.#end = end;
  }

  override take(): Taking {
    return this.#pool.takeFor(this);
  }

  served(place: HeldPlace): Taking {
    this.#place = place;
    return "taken";
  }

  /** The pool will never serve it. */
  refuse(why: BusyReason): Taking {
    this.#never = why;
    this.wait?.refused(this, "never");
    return "next";
  }

  fail(error: unknown): void {
    this.#end.reject(error);
    this.wait?.end(this, "never");
  }

  override ended(how: WaitEnd, waitedMs: number): void {
    const { position, capacityClass } = this;
    const place = this.#place;
    const outcome = how === "never" ? this.#never : how;
    this.#pool.onWaited({ capacityClass, waitedMs, outcome });
    if (outcome === "served") {
      if (place === undefined) throw new Error("a call was served without a place");
      place.waitedMs = waitedMs;
      place.position = position;
      return this.#end.resolve({ place, at: this.spots.get(place.spot) ?? 0, refused: [] });
    }
    const ofReason = outcome === "left" ? 0 : busyRetryAfterMs;
    const retryAfterMs = how === "never" ? Infinity : ofReason;
    this.#end.resolve({ refused: [{ busy: outcome, retryAfterMs, position, waitedMs }] });
  }
}
