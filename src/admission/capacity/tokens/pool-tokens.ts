import type { LimitDecision } from "../../../store/limits/limit-store.ts";
import { AccountShares } from "./account-shares.ts";
import type { PoolTokensOptions, Reservation } from "./reservation.ts";
import { poolScope, SharedPoolTokens } from "./shared-pool-tokens.ts";

/** What a call asks for. */
type TokenWish = Pick<Reservation, "accountId" | "tokens">;

/** The tokens of a pool that are not reserved for guarantees. */
export class PoolTokens {
  readonly #options: PoolTokensOptions;
  readonly #shares: AccountShares;
  readonly #shared: SharedPoolTokens;
  #reservations = 0;

  constructor(options: PoolTokensOptions) {
    this.#options = options;
    this.#shares = new AccountShares(options.clock.monotonic());
    this.#shared = new SharedPoolTokens(options, this.#shares);
  }

  isLight({ accountId, tokens }: TokenWish, tokensPerMinute: number): boolean {
    if (this.#shared.yieldMs(accountId) > 0) return false;
    const now = this.#options.clock.monotonic();
    return this.#shares.isLight({ accountId, tokens, tokensPerMinute }, now);
  }

  /** How long a request has to wait so that enough is left for lighter accounts. */
  yieldMs({ accountId, tokens }: TokenWish, tokensPerMinute: number): number {
    const now = this.#options.clock.monotonic();
    const waitMs = this.#shares.waitMs({ accountId, tokens, tokensPerMinute }, now);
    return Math.max(waitMs, this.#shared.yieldMs(accountId));
  }

  /** Each has its own id: a call may ask several pools, and one pool several times. */
  newReservation({
    callId,
    accountId,
    tokens,
  }: TokenWish & { readonly callId: string }): Reservation {
    this.#reservations += 1;
    const id = `${callId}/${this.#options.scopeId}/${this.#reservations}`;
    return { id, accountId, tokens, slot: undefined };
  }

  /** Errors are always rejections, so that giving back a place never throws. */
  ask(reservation: Reservation, tokensPerMinute: number): LimitDecision | Promise<LimitDecision> {
    const { limits, scopeId, processes } = this.#options;
    const { id: callId, tokens } = reservation;
    try {
      if (processes() > 1) return this.#shared.ask(reservation, tokensPerMinute);
      return limits.acquire({ callId, scopes: [poolScope(scopeId, tokensPerMinute)], tokens });
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Called when the store has granted it. */
  granted(reservation: Reservation): void {
    const { accountId, tokens } = reservation;
    reservation.slot = this.#shares.charge(accountId, tokens, this.#options.clock.monotonic());
  }

  /** A reservation whose settling fails expires in the store. */
  settle({ id, accountId, tokens, slot }: Reservation, usedTokens: number): void {
    Promise.resolve(this.#options.limits.settle(id, usedTokens)).catch(() => undefined);
    if (slot !== undefined) this.#shares.adjust(accountId, usedTokens - tokens, slot);
  }
}
