import type { LimitDecision, LimitStore } from "../../storage/store.ts";
import type { PlaceRequest } from "./place.ts";

/** Tokens of a pool's minute that a call was promised. */
export interface Reservation {
  /** Names it in the limit store. */
  readonly id: string;
  readonly tokens: number;
}

/** The tokens of a pool that are not held back for guarantees, in the store of limits. */
export class PoolTokens {
  readonly #limits: LimitStore;
  readonly #scopeId: string;
  #reservations = 0;

  constructor(limits: LimitStore, scopeId: string) {
    this.#limits = limits;
    this.#scopeId = scopeId;
  }

  /** A call may come to several pools, and to one several times: each reservation has its own id. */
  newReservation({ callId, tokens }: PlaceRequest): Reservation {
    this.#reservations += 1;
    return { id: `${callId}/${this.#scopeId}/${this.#reservations}`, tokens };
  }

  /** Fails later, if at all, so that whoever gives a place back never sees it. */
  ask(
    { id: callId, tokens }: Reservation,
    tokensPerMinute: number,
  ): LimitDecision | Promise<LimitDecision> {
    const limits = { requestsPerMinute: Infinity, tokensPerMinute };
    try {
      return this.#limits.acquire({ callId, scopes: [{ id: this.#scopeId, limits }], tokens });
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** What cannot be settled ages out by itself. */
  settle({ id }: Reservation, usedTokens: number): void {
    Promise.resolve(this.#limits.settle(id, usedTokens)).catch(() => undefined);
  }
}
