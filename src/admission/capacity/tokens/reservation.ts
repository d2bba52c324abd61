import type { Clock } from "../../../domain/clock.ts";
import type { TokenLimits } from "../../../store/limits/limit-store.ts";

/** Tokens of a pool's minute that are reserved for a call. */
export interface Reservation {
  /** Its id in the limit store. */
  readonly id: string;
  readonly accountId: string;
  readonly tokens: number;
  /** The second in which it was granted. */
  slot: number | undefined;
}

export interface PoolTokensOptions {
  readonly clock: Pick<Clock, "monotonic">;
  readonly limits: TokenLimits;
  /** The store's scope of the tokens. */
  readonly scopeId: string;
  /** How many processes grant them. */
  readonly processes: () => number;
}
