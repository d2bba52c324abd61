import type { Pool, PoolName } from "../../domain/limits/capacity.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import {
  Gate,
  type Taking,
  type Turn,
  type Wait,
  type WaitEnd,
} from "../../domain/waiting/gate.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import {
  busy,
  type BusyPool,
  type BusyReason,
  classAt,
  type EnterResult,
  isBound,
  type Place,
  type PlaceHolder,
  type PlaceRequest,
  type Waited,
} from "./place.ts";
import {
  boundsOfPool,
  boundsOfUpstream,
  type GateServices,
  type PoolBounds,
  PoolPlaces,
  type SharedPool,
} from "./pool-bounds.ts";
import { PoolTokens, type Refused, type Reservation } from "./tokens/pool-tokens.ts";
import { type UpstreamPlaces, UpstreamRequests } from "./upstream-places.ts";

/** Where a call takes a place: at a target, its pool and its upstream, together. */
export interface Spot {
  readonly pool: PoolGate;
  readonly upstream: UpstreamPlaces;
  readonly target: ConcurrencyLimit;
}

export interface PoolGateOptions {
  readonly place: PoolName;
  /** Undefined for the targets of an upstream that name no pool. */
  readonly source?: Pool;
  /** How many processes share the pool. */
  readonly processes: () => number;
  /** Where several do: what this process may use of it. */
  readonly slots?: SharedPool | undefined;
}

/** A place, or why the call gets no tokens: it has to wait so that enough is left for others. */
type Entered = HeldPlace | Refused | { readonly yieldMs: number };

/** When a call that finds no place may try again: a place may come back at any time. */
const busyRetryAfterMs = 1_000;
const onlyGuaranteed = busy("full", Infinity);
const fullPool = busy("full", busyRetryAfterMs);
const fullUpstream = busy("full", busyRetryAfterMs);
const limitedTarget = busy("limit", busyRetryAfterMs);

/** One pool, or the targets of an upstream that name none: which call may have a place, and when. */
export class PoolGate {
  /** Undefined for the targets of an upstream that name no pool. */
  readonly name: string | undefined;
  source: Pool | undefined;
  readonly gate: Gate;
  readonly places = new PoolPlaces();
  readonly #options: PoolGateOptions & GateServices;
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

  constructor(options: PoolGateOptions & GateServices) {
    const { clock, place, source, settings, units } = options;
    this.#options = options;
    this.source = source;
    this.name = source?.name;
    this.#tokens = new PoolTokens({ ...options, scopeId: `${place.kind}:${place.name}` });
    this.gate = new Gate({
      clock,
      limit: () => settings().queueLimit,
      shares: {
        weightOf: (keyId) => units.unitsOf(place.name, keyId),
        heldBy: (keyId) => this.places.ofKey(keyId),
      },
      onServe: () => {
        this.#bounds = this.#boundsNow();
        this.#isHeldUp = this.#isAsking;
        this.#isAnswerOld = this.#isAsking;
        this.#yieldMs = Infinity;
      },
    });
  }

  get isIdle(): boolean {
    return this.places.all === 0 && this.gate.size === 0;
  }

  /** A place now, or none; no call overtakes calls that wait for the same places. */
  tryEnter(
    request: PlaceRequest,
    spot: Spot,
  ): HeldPlace | BusyPool | Promise<HeldPlace | BusyPool> {
    // If a limit of the target has ended, calls that wait for it go first.
    spot.target.limitAt(this.#options.clock.monotonic());
    const bounds = this.#boundsNow();
    const { keyId } = request;
    const place = new HeldPlace(spot, { keyId, capacityClass: classAt(request, this.name) });
    const full = this.#whatIsFull(place, spot, bounds);
    if (full !== undefined) return full;
    if (this.gate.size > 0 && this.#isOthersTurn(request, place, bounds)) {
      const { freeInMs } = this.gate;
      return freeInMs > 0 ? busy("tokens", freeInMs) : fullPool;
    }
    const entered = this.#enter(place, request, bounds);
    if (!(entered instanceof Promise)) return placeOrBusy(entered);
    return entered.then((result) => {
      // A call may have come to wait for this place in the meantime.
      if (!(result instanceof HeldPlace)) this.gate.serve();
      return placeOrBusy(result);
    });
  }

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
    this.places.giveBack(place);
    this.#options.slots?.leaving();
    place.release();
    this.gate.serve();
    this.#options.slots?.left();
  }

  onWaited(waited: Waited): void {
    this.#options.onWaited?.(this.#options.place, waited);
  }

  #boundsNow(): PoolBounds {
    if (this.source === undefined) return boundsOfUpstream;
    const whole = boundsOfPool(this.source, this.#options.units);
    return this.#options.slots?.follow(whole) ?? whole;
  }

  #whatIsFull(holder: PlaceHolder, { upstream, target }: Spot, bounds: PoolBounds) {
    const isGuaranteed = holder.capacityClass === "provisioned";
    if (!isGuaranteed && bounds.isDedicated) return onlyGuaranteed;
    if (!this.places.hasFree(holder, bounds)) return fullPool;
    if (upstream.free === 0 && isBound(holder, this.name)) return fullUpstream;
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
    const { openTokens } = this.#bounds;
    // Behind a call that leaves tokens to lighter accounts, only those are served.
    const isBehind = this.#yieldMs < Infinity && openTokens !== undefined;
    if (isBehind && !this.#tokens.isLight(turn.request, openTokens)) return "skip";
    const entered = this.#enter(new HeldPlace(spot, turn), turn.request, this.#bounds);
    if (!(entered instanceof Promise)) return this.#decide(turn, entered);
    this.#answerLater(turn, entered);
    return this.#holdUp("stop");
  }

  /** Takes the place, and keeps it if it needs no tokens or gets them. */
  #enter(
    place: HeldPlace,
    request: PlaceRequest,
    { openTokens }: PoolBounds,
  ): Entered | Promise<Entered> {
    const hasToAsk = place.capacityClass !== "provisioned" && openTokens !== undefined;
    const yieldMs = hasToAsk ? this.#tokens.yieldMs(request, openTokens) : 0;
    if (yieldMs > 0) return { yieldMs };
    place.take();
    if (!hasToAsk) return place;
    const finish = (reserved: Reservation | Refused): Entered => {
      if ("id" in reserved) {
        place.reservation = reserved;
        return place;
      }
      this.places.giveBack(place);
      place.release();
      return reserved;
    };
    const asked = this.#tokens.reserve(request, openTokens);
    if (!(asked instanceof Promise)) return finish(asked);
    return asked.then(finish, (error: unknown) => {
      place.leave();
      throw error;
    });
  }

  #answerLater(turn: PlaceTurn, answer: Promise<Entered>): void {
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

  #decide(turn: PlaceTurn, entered: Entered): Taking {
    const isOver = turn.wait?.isOver === true;
    if (entered instanceof HeldPlace) {
      if (!isOver) return turn.served(entered);
      entered.leave();
      return "next";
    }
    if ("yieldMs" in entered) {
      this.#yieldMs = Math.min(entered.yieldMs, this.#yieldMs);
      return this.#holdUp("skip", this.#yieldMs);
    }
    // A request that never fits must not keep others waiting.
    if (entered.freeAfterMs === undefined) return turn.refuse("tokens");
    // Its queue here may have displaced it while the store decided.
    return this.#holdUp(isOver || !this.gate.has(turn) ? "next" : "stop", entered.freeAfterMs);
  }

  /** Calls behind the one in turn have to wait, possibly until tokens are free. */
  #holdUp(taking: Taking, freeAfterMs = 0): Taking {
    this.#isHeldUp = true;
    if (freeAfterMs > 0) this.gate.freeIn(freeAfterMs);
    return taking;
  }
}

function placeOrBusy(entered: Entered): HeldPlace | BusyPool {
  if (entered instanceof HeldPlace) return entered;
  return busy(
    "tokens",
    "yieldMs" in entered ? entered.yieldMs : (entered.retryAfterMs ?? Infinity),
  );
}

/** A place at a pool and a target, and at their upstream one for each request. */
export class HeldPlace extends UpstreamRequests implements Place, PlaceHolder {
  waitedMs = 0;
  position: number | undefined;
  readonly spot: Spot;
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
  reservation: Reservation | undefined;
  #isHeld = false;

  constructor(spot: Spot, holder: PlaceHolder) {
    super(spot.upstream, isBound(holder, spot.pool.name), 1);
    this.spot = spot;
    this.capacityClass = holder.capacityClass;
    this.keyId = holder.keyId;
  }

  take(): void {
    const { pool, target, upstream } = this.spot;
    pool.places.take(this);
    target.take(this.keyId);
    upstream.take();
    this.#isHeld = true;
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
export class PlaceTurn implements Turn, PlaceHolder {
  readonly gate: Gate;
  readonly capacityClass: CapacityClass;
  readonly group: string;
  position = 0;
  wait: Wait | undefined;
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
    this.gate = pool.gate;
    this.capacityClass = classAt(request, pool.name);
    this.group = this.capacityClass === "provisioned" ? keyId : accountId;
    this.request = request;
    this.keyId = keyId;
    this.#pool = pool;
    this.#end = end;
  }

  take(): Taking {
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

  ended(how: WaitEnd, waitedMs: number): void {
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
