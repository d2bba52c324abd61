import type { CapacityClass } from "../../domain/usage/usage.ts";
import { type Taking, Turn, type WaitEnd } from "../../domain/waiting/gate.ts";
import type { HeldPlace } from "./held-place.ts";
import { type BusyReason, busyRetryAfterMs, type EnterResult, type PlaceRequest } from "./place.ts";
import type { PoolGate, Spot } from "./pool-gate.ts";

/** How the wait of a call ended. It is counted for the queue that ended it. */
export interface Waited {
  readonly capacityClass: CapacityClass;
  readonly waitedMs: number;
  readonly outcome: "served" | BusyReason;
}

interface PlaceTurnOptions extends Pick<Turn, "capacityClass"> {
  readonly request: PlaceRequest;
  /** Ends the call, which may wait at other pools too. */
  readonly end: PromiseWithResolvers<EnterResult<HeldPlace>>;
}

/** A call that waits at one of its pools. */
export class PlaceTurn extends Turn {
  readonly request: PlaceRequest;
  /** Where it can be served, best first, with the index of the candidate. */
  readonly spots = new Map<Spot, number>();
  readonly #pool: PoolGate;
  readonly #end: PlaceTurnOptions["end"];
  #place: HeldPlace | undefined;
  #never: BusyReason = "tokens";

  constructor(pool: PoolGate, { request, capacityClass, end }: PlaceTurnOptions) {
    const group = capacityClass === "provisioned" ? request.keyId : request.accountId;
    super(pool.gate, { capacityClass, group });
    this.request = request;
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
    if (outcome !== "served") {
      const ofReason = outcome === "left" ? 0 : busyRetryAfterMs;
      const retryAfterMs = how === "never" ? Infinity : ofReason;
      return this.#end.resolve({ refused: [{ busy: outcome, retryAfterMs, position, waitedMs }] });
    }
    if (place === undefined) throw new Error("a call was served without a place");
    place.waitedMs = waitedMs;
    place.position = position;
    this.#end.resolve({ place, at: this.spots.get(place.spot) ?? 0, refused: [] });
  }
}
