import type { Place, PlaceHolder, Spot } from "./place.ts";
import type { Reservation } from "./pool-tokens.ts";
import { RequestPlaces } from "../places/request-places.ts";

/** The pool that gave a place. */
export interface PlaceKeeper {
  /** Whether the limits of upstreams and targets apply to the holder. */
  isBound(holder: PlaceHolder): boolean;
  settle(reservation: Reservation, usedTokens: number): void;
  /** Takes back the places at pool and target. */
  takeBack(holder: PlaceHolder, spot: Spot): void;
  /** Serves waiting calls. */
  serve(): void;
}

/** A place at a pool and a target, and at their upstream one for each request. */
export class HeldPlace extends RequestPlaces implements Place {
  readonly #keeper: PlaceKeeper;
  readonly #holder: PlaceHolder;
  readonly #spot: Spot;
  #waitedMs = 0;
  #position: number | undefined;
  #reservation: Reservation | undefined;
  #isHeld = true;

  /** A stream is long: the holder must not keep the rest of the request in memory. */
  constructor(keeper: PlaceKeeper, holder: PlaceHolder, spot: Spot) {
    super(spot.upstream, keeper.isBound(holder), 1);
    this.#keeper = keeper;
    this.#holder = holder;
    this.#spot = spot;
  }

  get waitedMs(): number {
    return this.#waitedMs;
  }

  get position(): number | undefined {
    return this.#position;
  }

  /** Sets the tokens that were granted with it. */
  reserved(reservation: Reservation | undefined): this {
    this.#reservation = reservation;
    return this;
  }

  afterWait(waitedMs: number, position: number): this {
    this.#waitedMs = waitedMs;
    this.#position = position;
    return this;
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
    // All places are free before a waiting call is served, so that it finds them together.
    this.#keeper.takeBack(this.#holder, this.#spot);
    this.release();
    this.#keeper.serve();
  }
}
