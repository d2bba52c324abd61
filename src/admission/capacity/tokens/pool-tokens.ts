import type { LimitDecision, TokenLimits } from "../../../store/limits/limit-store.ts";
import { AccountShares } from "./account-shares.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { slotAt, slotMs } from "../../../domain/limits/slots.ts";

export interface PoolTokensOptions {
  readonly clock: Pick<Clock, "monotonic">;
  readonly limits: TokenLimits;
  /** The store's scope of the tokens. */
  readonly scopeId: string;
  /** How many processes grant them. */
  readonly processes: () => number;
}

/** Tokens of a pool's minute that are reserved for a call. */
export interface Reservation {
  /** Its id in the limit store. */
  readonly id: string;
  readonly accountId: string;
  readonly tokens: number;
  /** The second in which it was granted. */
  slot: number | undefined;
}

/** What a call asks for. */
type TokenWish = Pick<Reservation, "accountId" | "tokens">;

/** The tokens of a pool that are not reserved for guarantees. */
export class PoolTokens {
  readonly #options: PoolTokensOptions;
  readonly #shares: AccountShares;
  /** Accounts that the store has found to have more than their share, in this slot. */
  readonly #yielding = new Set<string>();
  #slot = Number.NEGATIVE_INFINITY;
  #reservations = 0;

  constructor(options: PoolTokensOptions) {
    this.#options = options;
    this.#shares = new AccountShares(options.clock.monotonic());
  }

  isLight({ accountId, tokens }: TokenWish, tokensPerMinute: number): boolean {
    const now = this.#advance();
    if (this.#yielding.has(accountId)) return false;
    return this.#shares.isLight({ accountId, tokens, tokensPerMinute }, now);
  }

  /** How long a request has to wait so that enough is left for lighter accounts. */
  yieldMs({ accountId, tokens }: TokenWish, tokensPerMinute: number): number {
    const now = this.#advance();
    const waitMs = this.#shares.waitMs({ accountId, tokens, tokensPerMinute }, now);
    // The store is asked again each second.
    const restMs = this.#yielding.has(accountId) ? (this.#slot + 1) * slotMs - now : 0;
    return Math.max(waitMs, restMs);
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
      if (processes() > 1) return this.#askByAccount(reservation, tokensPerMinute);
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

  /** An unavailable store does not delay the end of a call. */
  settle({ id, accountId, tokens, slot }: Reservation, usedTokens: number): void {
    Promise.resolve(this.#options.limits.settle(id, usedTokens)).catch(() => undefined);
    if (slot !== undefined) this.#shares.adjust(accountId, usedTokens - tokens, slot);
  }

  /**
   * Where several processes grant, the store counts the use of each account as well. What is beyond
   * an account's share is asked for with a smaller limit of the pool, so that it leaves as much to
   * the others as it does where one process grants all.
   */
  async #askByAccount(reservation: Reservation, tokensPerMinute: number): Promise<LimitDecision> {
    const { accountId, tokens } = reservation;
    const { scopeId } = this.#options;
    const share = this.#shares.shareOf(accountId, tokensPerMinute, this.#advance());
    let used = share;
    if (tokens <= share && !this.#yielding.has(accountId)) {
      const decision = await this.#acquire(reservation, { pool: tokensPerMinute, own: share });
      if (decision.isAdmitted || decision.scopeId === scopeId) return decision;
      used = share - decision.state.remainingTokens;
    }
    const left = tokensPerMinute - this.#shares.keptBy(used, tokensPerMinute, this.#advance());
    const pool = tokens > left ? tokensPerMinute : left;
    const decision = await this.#acquire(reservation, { pool, own: tokensPerMinute });
    this.#advance();
    if (!decision.isAdmitted) this.#yielding.add(accountId);
    return decision;
  }

  async #acquire(
    { id: callId, accountId, tokens }: Reservation,
    limits: { readonly pool: number; readonly own: number },
  ): Promise<LimitDecision> {
    const { limits: store, scopeId } = this.#options;
    const own = { ...poolScope(`${scopeId}/${accountId}`, limits.own), owner: scopeId };
    return store.acquire({ callId, scopes: [poolScope(scopeId, limits.pool), own], tokens });
  }

  #advance(): number {
    const now = this.#options.clock.monotonic();
    const slot = slotAt(now);
    if (slot !== this.#slot) this.#yielding.clear();
    this.#slot = slot;
    return now;
  }
}

/** The tokens of a pool; excess use expires with the second of its admission. */
function poolScope(id: string, limit: number): LimitScope {
  return { id, unit: "tokens", window: "minute", limit, isShared: true };
}
