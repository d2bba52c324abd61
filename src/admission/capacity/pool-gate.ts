import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { Gate, type Taking } from "../../domain/waiting/gate.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import type { LimitDecision } from "../../store/limits/limit-store.ts";
import { HeldPlace } from "./held-place.ts";
import { busy, type BusyPool, busyRetryAfterMs, classAt, type PlaceRequest } from "./place.ts";
import type { PlaceTurn, Waited } from "./place-turn.ts";
import { boundsOfUpstream, type PoolBounds } from "./pool-bounds.ts";
import { PoolTokens, type PoolTokensOptions, type Reservation } from "./tokens/pool-tokens.ts";
import type { SharedPlaces, UpstreamPlaces } from "./upstream-places.ts";

/** A target, at whose upstream and pool one place each is taken together with one of its own. */
export interface Spot {
  readonly pool: PoolGate;
  readonly upstream: UpstreamPlaces;
  readonly target: ConcurrencyLimit;
}

interface PoolGateOptions extends PoolTokensOptions {
  readonly clock: Clock;
  /** Its name; undefined for the targets of an upstream that name none. */
  readonly pool: string | undefined;
  /** Read for each decision of a newcomer, and once for all that wait. */
  readonly bounds: () => PoolBounds;
  readonly unitsOf: (keyId: string) => number;
  /** Most calls of one lane that wait. */
  readonly queueLimit: () => number;
  readonly onWaited: (waited: Waited) => void;
  readonly shared: SharedPlaces | undefined;
}

type Refused = Extract<LimitDecision, { readonly isAdmitted: false }>;

const full = busy("full", busyRetryAfterMs);
const fullUpstream = busy("full", busyRetryAfterMs);
const atLimit = busy("limit", busyRetryAfterMs);
const onlyGuaranteed = busy("full", Infinity);

/**
 * One pool, or the targets of an upstream that name none: who holds its places, and whether a call
 * may have one, together with one at an upstream and a target.
 */
export class PoolGate {
  readonly gate: Gate;
  /** Its name; undefined for the targets of an upstream that name none. */
  readonly pool: string | undefined;
  readonly #options: PoolGateOptions;
  readonly #tokens: PoolTokens;
  readonly #counts: Record<CapacityClass, number> = {
    provisioned: 0,
    spillover: 0,
    "on-demand": 0,
  };
  /** Provisioned places by key. */
  readonly #keys = new Map<string, number>();
  /** For the calls that wait; read when they are served. */
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
    const { clock, bounds, queueLimit: limit, unitsOf: weightOf } = options;
    this.#options = options;
    this.pool = options.pool;
    this.#tokens = new PoolTokens(options);
    const heldBy = (keyId: string): number => this.ofKey(keyId);
    this.gate = new Gate({
      clock,
      limit,
      shares: { weightOf, heldBy },
      onServe: () => {
        this.#bounds = bounds();
        this.#isHeldUp = false;
        this.#yieldMs = Infinity;
        this.#isAnswerOld = this.#isAsking;
        if (!this.#isAsking) this.gate.freeAtMs = 0;
      },
    });
  }

  of(capacityClass: CapacityClass): number {
    return this.#counts[capacityClass];
  }

  /** The places of a key within its guarantee. */
  ofKey(keyId: string): number {
    return this.#keys.get(keyId) ?? 0;
  }

  /** Provisioned places by key. */
  get keys(): ReadonlyMap<string, number> {
    return this.#keys;
  }

  /** All that are held. More may be held than there are, after a reload. */
  get all(): number {
    return this.#counts.provisioned + this.heldOpen;
  }

  /** Places of spillover and on-demand calls, which have no guarantee. */
  get heldOpen(): number {
    return this.#counts.spillover + this.#counts["on-demand"];
  }

  get isIdle(): boolean {
    return this.all === 0 && this.gate.size === 0;
  }

  /** A place now, or none; no call overtakes calls that wait for the same places. */
  tryEnter(
    request: PlaceRequest,
    spot: Spot,
  ): HeldPlace | BusyPool | Promise<HeldPlace | BusyPool> {
    const bounds = this.#options.bounds();
    const capacityClass = classAt(request, this.pool);
    const isGuaranteed = capacityClass === "provisioned";
    const { keyId } = request;
    const nowMs = this.#options.clock.monotonic();
    // If a limit of the target has ended, calls that wait for it go first.
    spot.target.limitAt(nowMs);
    if (!isGuaranteed && bounds.isDedicated) return onlyGuaranteed;
    if (!this.#hasFree(capacityClass, keyId, bounds)) return full;
    if (this.gate.size > 0 && this.#isOthersTurn(request, capacityClass, bounds)) {
      const waitMs = this.gate.freeAtMs - nowMs;
      return waitMs > 0 ? busy("tokens", waitMs) : full;
    }
    const blocked = this.#fullAt(spot, capacityClass, keyId);
    if (blocked !== undefined) return blocked;
    if (isGuaranteed || bounds.openTokens === undefined) {
      return this.#take(spot, capacityClass, keyId);
    }
    const yieldMs = this.#tokens.yieldMs(request, bounds.openTokens);
    if (yieldMs > 0) return busy("tokens", yieldMs);
    const place = this.#take(spot, capacityClass, keyId);
    const reserved = this.#reserve(place, request, bounds.openTokens);
    if (!(reserved instanceof Promise)) return placeOrBusy(reserved);
    return reserved.then((result) => {
      // A call may have come to wait for this place in the meantime.
      if (!(result instanceof HeldPlace)) this.gate.serve();
      return placeOrBusy(result);
    });
  }

  /** Takes what a waiting call needs. */
  takeFor(turn: PlaceTurn): Taking {
    const { capacityClass, request } = turn;
    const { keyId } = request;
    const { openTokens, isDedicated } = this.#bounds;
    const isGuaranteed = capacityClass === "provisioned";
    if (!isGuaranteed && isDedicated) return turn.refuse("full");
    const isFree = !this.#isAsking || isGuaranteed;
    if (!isFree || !this.#hasFree(capacityClass, keyId, this.#bounds)) {
      this.#isHeldUp = true;
      return isGuaranteed ? "skip" : "stop";
    }
    const spot = this.#spotFor(turn);
    if (spot === undefined) return "next";
    if (isGuaranteed || openTokens === undefined) {
      return turn.served(this.#take(spot, capacityClass, keyId));
    }
    const yieldMs = this.#tokens.yieldMs(request, openTokens);
    if (yieldMs > 0) {
      this.#isHeldUp = true;
      this.#yieldMs = Math.min(yieldMs, this.#yieldMs);
      this.gate.freeAtMs = this.#options.clock.monotonic() + this.#yieldMs;
      return "skip";
    }
    const place = this.#take(spot, capacityClass, keyId);
    const reserved = this.#reserve(place, request, openTokens);
    if (!(reserved instanceof Promise)) return this.#decide(turn, reserved);
    this.#answerLater(turn, reserved);
    return "stop";
  }

  settle(reservation: Reservation, usedTokens: number): void {
    this.#tokens.settle(reservation, usedTokens);
    if (usedTokens < reservation.tokens) this.gate.serve();
  }

  /** The waiting calls are served once all places are back, so that they find them together. */
  leave(place: HeldPlace): void {
    const { shared } = this.#options;
    this.#takeBack(place);
    shared?.leaving();
    place.release();
    this.gate.serve();
    shared?.left();
  }

  onWaited(waited: Waited): void {
    this.#options.onWaited(waited);
  }

  #isOthersTurn(request: PlaceRequest, capacityClass: CapacityClass, bounds: PoolBounds): boolean {
    const { guaranteed, open } = this.gate;
    const { keyId, accountId } = request;
    if (guaranteed.size === 0 && (capacityClass === "provisioned" || !this.#isHeldUp)) return false;
    if (capacityClass === "provisioned") {
      // No other key can use the places of a key.
      return guaranteed.groups.has(keyId) || !this.#isWithinOwn(keyId, bounds);
    }
    // A newcomer of a lighter account may pass the queue; it never passes its own calls.
    if (this.#yieldMs === Infinity || bounds.openTokens === undefined) return true;
    return open.groups.has(accountId) || !this.#tokens.isLight(request, bounds.openTokens);
  }

  #take(spot: Spot, capacityClass: CapacityClass, keyId: string): HeldPlace {
    this.#counts[capacityClass] += 1;
    if (capacityClass === "provisioned") this.#keys.set(keyId, this.ofKey(keyId) + 1);
    spot.target.take(keyId);
    spot.upstream.take();
    return new HeldPlace(spot, { capacityClass, keyId, isBound: this.#isBound(capacityClass) });
  }

  #takeBack({ capacityClass, keyId, spot }: HeldPlace): void {
    spot.target.giveBack(keyId);
    this.#counts[capacityClass] -= 1;
    if (capacityClass !== "provisioned") return;
    const held = this.ofKey(keyId) - 1;
    if (held === 0) this.#keys.delete(keyId);
    else this.#keys.set(keyId, held);
  }

  /** Gives back a place that no call got. */
  #undo(place: HeldPlace): void {
    this.#takeBack(place);
    place.release();
  }

  /** Keeps the place if the store grants the tokens, else gives it back. */
  #reserve(
    place: HeldPlace,
    request: PlaceRequest,
    openTokens: number,
  ): HeldPlace | Refused | Promise<HeldPlace | Refused> {
    const reservation = this.#tokens.newReservation(request);
    const asked = this.#tokens.ask(reservation, openTokens);
    const finish = (decision: LimitDecision): HeldPlace | Refused => {
      if (decision.isAdmitted) {
        this.#tokens.granted(reservation);
        place.reservation = reservation;
        return place;
      }
      this.#undo(place);
      return decision;
    };
    if (!(asked instanceof Promise)) return finish(asked);
    return asked.then(finish, (error: unknown) => {
      this.#undo(place);
      this.gate.serve();
      throw error;
    });
  }

  #answerLater(turn: PlaceTurn, answer: Promise<HeldPlace | Refused>): void {
    this.#isAsking = true;
    this.#isHeldUp = true;
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
    if (reserved instanceof HeldPlace) {
      if (turn.wait?.isOver !== true) return turn.served(reserved);
      reserved.leave();
      return "next";
    }
    // A request that never fits must not keep others waiting.
    if (reserved.freeAfterMs === undefined) return turn.refuse("tokens");
    this.#isHeldUp = true;
    this.gate.freeAtMs = this.#options.clock.monotonic() + reserved.freeAfterMs;
    return turn.wait?.isOver === true ? "next" : "stop";
  }

  /** The first spot of a waiting call with room; if there is none, the gate is served later. */
  #spotFor({ spots, capacityClass, request: { keyId } }: PlaceTurn): Spot | undefined {
    for (const spot of spots.keys()) {
      const blocked = this.#fullAt(spot, capacityClass, keyId);
      if (blocked === undefined) return spot;
      if (blocked === atLimit) spot.target.waiting.add(this.gate);
      else spot.upstream.whenFree(this.gate);
    }
    return undefined;
  }

  #fullAt({ upstream, target }: Spot, capacityClass: CapacityClass, keyId: string) {
    if (upstream.free === 0 && this.#isBound(capacityClass)) return fullUpstream;
    if (capacityClass === "provisioned") return undefined;
    return target.hasRoom(keyId, this.#options.clock.monotonic()) ? undefined : atLimit;
  }

  /** Whether the limits of upstreams apply: not to calls within the guarantees of a pool. */
  #isBound(capacityClass: CapacityClass): boolean {
    return capacityClass !== "provisioned" || this.pool === undefined;
  }

  /** Whether the pool itself has room. */
  #hasFree(capacityClass: CapacityClass, keyId: string, bounds: PoolBounds): boolean {
    if (this.all >= bounds.places) return false;
    const isOpen = capacityClass !== "provisioned";
    if (!isOpen && this.#isWithinOwn(keyId, bounds)) return true;
    if (isOpen && this.heldOpen >= bounds.openPlaces) return false;
    const spare = bounds.places - this.all;
    return spare > bounds.keptPlaces || spare > this.#unusedOwn(bounds);
  }

  /** Whether the next place is one that the key's units guarantee. */
  #isWithinOwn(keyId: string, { ownPlaces }: PoolBounds): boolean {
    return this.ofKey(keyId) < ownPlaces(keyId);
  }

  /** Guaranteed places that their keys do not use at the moment. */
  #unusedOwn({ keptPlaces, ownPlaces }: PoolBounds): number {
    let unused = keptPlaces;
    for (const [keyId, held] of this.#keys) unused -= Math.min(held, ownPlaces(keyId));
    return Math.max(0, unused);
  }
}

function placeOrBusy(reserved: HeldPlace | Refused): HeldPlace | BusyPool {
  if (reserved instanceof HeldPlace) return reserved;
  return busy("tokens", reserved.retryAfterMs ?? Infinity);
}
