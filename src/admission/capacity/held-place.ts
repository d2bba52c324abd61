import type { Place, PlaceHolder, Spot } from "./place.ts";
import type { Reservation } from "./tokens/pool-tokens.ts";
import { RequestPlaces } from "./request-places.ts";

/** The pool that gave a place. */
export interface PlaceKeeper {
  settle(reservation: Reservation, usedTokens: number): void;
  /** Takes back the places at pool and target. */
  takeBack(taken: TakenPlaces): void;
  /** Serves waiting calls. */
  serve(): void;
}

/** Places that were taken in one step. */
export interface TakenPlaces {
  readonly holder: PlaceHolder;
  readonly spot: Spot;
  /** Whether the limit of the upstream applies. */
  readonly isBound: boolean;
}

/** A place at a pool and a target, and at their upstream one for each request. */
export class HeldPlace extends RequestPlaces implements Place {
  waitedMs = 0;
  position: number | undefined;
  readonly #keeper: PlaceKeeper;
  readonly #taken: TakenPlaces;
  #reservation: Reservation | undefined;
  #isHeld = true;

  constructor(keeper: PlaceKeeper, taken: TakenPlaces, reservation?: Reservation) {
    super(taken.spot.upstream, taken.isBound, 1);
    this.#keeper = keeper;
    // A stream can last long: the rest of the request must not stay in memory.
    const { capacityClass, keyId } = taken.holder;
    this.#taken = { ...taken, holder: { capacityClass, keyId } };
    this.#reservation = reservation;
  }

  settle(tokens: number): void {
    const reservation = this.#reservation;
    if (reservation === undefined) return;
    this.#reservation = undefined;
    this.#keeper.settle(reservation, tokens);
  }

  leave(): void {
    if (!this.#isHeld) return;
    this.settle(0);
    this.#isHeld = false;
    // The waiting calls are served once all places are back, so that they find them together.
    this.#keeper.takeBack(this.#taken);
    this.release();
    this.#keeper.serve();
  }
}
