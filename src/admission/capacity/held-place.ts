import type { Place, PlaceHolder } from "./place.ts";
import type { Reservation } from "./pool-tokens.ts";

/** The pool that gave a place, as the place sees it. */
export interface PlaceKeeper {
  settle(reservation: Reservation, usedTokens: number): void;
  takeBack(holder: PlaceHolder): void;
}

export interface PlaceHistory {
  readonly reservation: Reservation | undefined;
  readonly waitedMs: number;
  readonly position: number | undefined;
}

export class HeldPlace implements Place {
  readonly waitedMs: number;
  readonly position: number | undefined;
  readonly #keeper: PlaceKeeper;
  readonly #holder: PlaceHolder;
  #reservation: Reservation | undefined;
  #isHeld = true;

  constructor(keeper: PlaceKeeper, holder: PlaceHolder, history: PlaceHistory) {
    this.#keeper = keeper;
    // What asked for the place knows more, and a stream lives long.
    this.#holder = { capacityClass: holder.capacityClass, keyId: holder.keyId };
    this.#reservation = history.reservation;
    this.waitedMs = history.waitedMs;
    this.position = history.position;
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
    this.#keeper.takeBack(this.#holder);
  }
}
