import type { Place, PlaceHolder } from "./place.ts";
import type { Reservation } from "./pool-tokens.ts";
import { RequestPlaces } from "../places/request-places.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";

/** The pool that gave a place. */
export interface PlaceKeeper {
  /** Whether the limits of upstreams apply to the holder. */
  isBound(holder: PlaceHolder): boolean;
  settle(reservation: Reservation, usedTokens: number): void;
  takeBack(holder: PlaceHolder): void;
}

/** A place at a pool, and its requests' places at the upstream, of which the first was taken. */
export class HeldPlace extends RequestPlaces implements Place {
  readonly #keeper: PlaceKeeper;
  readonly #holder: PlaceHolder;
  #waitedMs = 0;
  #position: number | undefined;
  #reservation: Reservation | undefined;
  #isHeld = true;

  constructor(keeper: PlaceKeeper, holder: PlaceHolder, upstream: UpstreamPlaces) {
    super(upstream, keeper.isBound(holder), 1);
    this.#keeper = keeper;
    // A stream is long: the rest of the request must not stay in memory.
    this.#holder = { capacityClass: holder.capacityClass, keyId: holder.keyId };
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
    this.release();
    this.#keeper.takeBack(this.#holder);
  }
}
