import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { slotAt, slotMs } from "../../../domain/limits/slots.ts";
import type { LimitDecision } from "../../../store/limits/limit-store.ts";
import type { AccountShares } from "./account-shares.ts";
import type { PoolTokensOptions, Reservation } from "./reservation.ts";

/** The tokens of a pool; excess use expires with the second of its admission. */
export function poolScope(id: string, limit: number): LimitScope {
  return { id, unit: "tokens", window: "minute", limit, isShared: true };
}

/**
 * The tokens of a pool that several processes grant. The limit store counts the use of each account
 * as well. What is beyond an account's share is asked for with a smaller limit of the pool, so that
 * it leaves as much to the others as it does where one process grants all.
 */
export class SharedPoolTokens {
  readonly #options: PoolTokensOptions;
  readonly #shares: AccountShares;
  /** Accounts whose calls have to leave tokens to others in this slot. */
  readonly #yielding = new Set<string>();
  #slot = Number.NEGATIVE_INFINITY;

  constructor(options: PoolTokensOptions, shares: AccountShares) {
    this.#options = options;
    this.#shares = shares;
  }

  /** How long an account's calls let those of others pass: the store is asked each second. */
  yieldMs(accountId: string): number {
    const now = this.#advance();
    return this.#yielding.has(accountId) ? (this.#slot + 1) * slotMs - now : 0;
  }

  async ask(reservation: Reservation, tokensPerMinute: number): Promise<LimitDecision> {
    const { accountId, tokens } = reservation;
    const share = this.#shares.shareOf(accountId, tokensPerMinute, this.#advance());
    let used = share;
    if (tokens <= share && !this.#yielding.has(accountId)) {
      const decision = await this.#acquire(reservation, { pool: tokensPerMinute, own: share });
      if (decision.isAdmitted || decision.scopeId === this.#options.scopeId) return decision;
      used = share - decision.state.remainingTokens;
    }
    const kept = this.#shares.keptBy(used, tokensPerMinute, this.#advance());
    const left = tokensPerMinute - kept;
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
    const own = poolScope(`${scopeId}/${accountId}`, limits.own);
    const scopes = [poolScope(scopeId, limits.pool), { ...own, owner: scopeId }];
    return store.acquire({ callId, scopes, tokens });
  }

  #advance(): number {
    const now = this.#options.clock.monotonic();
    const slot = slotAt(now);
    if (slot !== this.#slot) this.#yielding.clear();
    this.#slot = slot;
    return now;
  }
}
