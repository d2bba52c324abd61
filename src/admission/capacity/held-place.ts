import type { Place, PlaceHolder } from "./place.ts";
import type { Reservation } from "./pool-tokens.ts";
import { RequestPlaces } from "../places/request-places.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";

/** The pool that gave a place, as the place sees it. */
export interface PlaceKeeper {
  /** Whether it is held to the places that others have at upstreams. */
  isBound(holder: PlaceHolder): boolean;
  settle(reservation: Reservation, usedTokens: number): void;
  takeBack(holder: PlaceHolder): void;
}

/** A place at a pool, and those at the upstream of its requests, of which the first was taken. */
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
    // What asked for the place knows more, and a stream lives long.
    this.#holder = { capacityClass: holder.capacityClass, keyId: holder.keyId };
  }

  get waitedMs(): number {
    return this.#waitedMs;
  }

  get position(): number | undefined {
    return this.#position;
  }

  /** Tokens that were granted with it. */
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
