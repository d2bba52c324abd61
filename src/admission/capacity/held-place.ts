import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { Place, PlaceHolder } from "./place.ts";
import type { Spot } from "./pool-gate.ts";
import type { Reservation } from "./tokens/pool-tokens.ts";
import { type RequestTerms, UpstreamRequests } from "./upstream-requests.ts";

/** A place at a pool and a target, and at their upstream one for each request. */
export class HeldPlace extends UpstreamRequests implements Place {
  waitedMs = 0;
  position: number | undefined;
  readonly spot: Spot;
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
  /** Tokens of the pool. */
  reservation: Reservation | undefined;
  #isHeld = true;

  /** Its places were taken; `isBound`: whether the limit of the upstream applies. */
  constructor(spot: Spot, { capacityClass, keyId, isBound }: PlaceHolder & RequestTerms) {
    super(spot.upstream, isBound, 1);
    this.spot = spot;
    this.capacityClass = capacityClass;
    this.keyId = keyId;
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
