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
  readonly processes: () => number;
}

/** Tokens of a pool's minute that are reserved for a call. */
export interface Reservation {
  readonly id: string;
  readonly accountId: string;
  readonly tokens: number;
  /** The second in which it was granted. */
  readonly slot: number;
}

export type Refused = Extract<LimitDecision, { readonly isAdmitted: false }>;
/** What is asked for under an id. */
type Wish = Omit<Reservation, "slot">;

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

  /** Errors are always rejections, so that giving back a place never throws. */
  reserve(
    { callId, accountId, tokens }: TokenWish & { readonly callId: string },
    tokensPerMinute: number,
  ): Reservation | Refused | Promise<Reservation | Refused> {
    const { limits, scopeId, processes } = this.#options;
    this.#reservations += 1;
    // A call may ask several pools, and one pool several times.
    const id = `${callId}/${scopeId}/${this.#reservations}`;
    const wish = { id, accountId, tokens };
    const finish = (decision: LimitDecision): Reservation | Refused => {
      if (!decision.isAdmitted) return decision;
      return { ...wish, slot: this.#shares.charge(accountId, tokens, this.#advance()) };
    };
    try {
      const scopes = [poolScope(scopeId, tokensPerMinute)];
      const asked =
        processes() > 1
          ? this.#askByAccount(wish, tokensPerMinute)
          : limits.acquire({ callId: id, scopes, tokens });
      return asked instanceof Promise ? asked.then(finish) : finish(asked);
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** An unavailable store does not delay the end of a call. */
  settle({ id, accountId, tokens, slot }: Reservation, usedTokens: number): void {
    Promise.resolve(this.#options.limits.settle(id, usedTokens)).catch(() => undefined);
    this.#shares.adjust(accountId, usedTokens - tokens, slot);
  }

  /**
   * Where several processes grant, the store counts the use of each account as well. What is beyond
   * an account's share is asked for with a smaller limit of the pool, so that it leaves as much to
   * the others as it does where one process grants all.
   */
  async #askByAccount(wish: Wish, tokensPerMinute: number): Promise<LimitDecision> {
    const { accountId, tokens } = wish;
    const { scopeId } = this.#options;
    const share = this.#shares.shareOf(accountId, tokensPerMinute, this.#advance());
    let used = share;
    if (tokens <= share && !this.#yielding.has(accountId)) {
      const decision = await this.#acquire(wish, { pool: tokensPerMinute, own: share });
      if (decision.isAdmitted || decision.scopeId === scopeId) return decision;
      used = share - decision.state.remainingTokens;
    }
    const left = tokensPerMinute - this.#shares.keptBy(used, tokensPerMinute, this.#advance());
    const pool = tokens > left ? tokensPerMinute : left;
    const decision = await this.#acquire(wish, { pool, own: tokensPerMinute });
    this.#advance();
    if (!decision.isAdmitted) this.#yielding.add(accountId);
    return decision;
  }

  async #acquire(
    { id: callId, accountId, tokens }: Wish,
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
