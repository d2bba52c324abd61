import { AgingMap } from "../../../domain/limits/aging-map.ts";
import { SlidingSum } from "../../../domain/limits/sliding-sum.ts";
import { countedSlots, slotAt, slotLifeMs, slotMs } from "../../../domain/limits/slots.ts";

/** An account's request for some of a pool's tokens per minute. */
export interface ShareRequest {
  readonly accountId: string;
  readonly tokens: number;
  readonly tokensPerMinute: number;
}

/** Share of a minute's tokens that heavy accounts leave to light ones. */
const keptShare = 0.2;
const countedMs = countedSlots * slotMs;
/** The usage of further accounts is not counted: they are light. */
const mostAccounts = 10_000;

/**
 * The tokens of a pool that each account used in the last minute. A burst can use up the tokens of
 * a minute in its first second, so an account above its share must leave some to the others. It
 * must leave fewer as the time approaches when used tokens are free again, so no tokens go to
 * waste. Counts only what this process granted and decides only whose turn it is: the limit store
 * enforces the limit. Where several processes grant, `PoolTokens` asks it for the shares too.
 */
export class AccountShares {
  readonly #all: SlidingSum;
  readonly #accounts: AgingMap<SlidingSum>;
  #slot: number;

  constructor(nowMs: number) {
    this.#slot = slotAt(nowMs);
    this.#all = new SlidingSum(countedSlots, this.#slot);
    this.#accounts = new AgingMap(countedSlots, this.#slot);
  }

  /** Whether an account stays within its share, even if one more account arrived. */
  isLight({ accountId, tokens, tokensPerMinute }: ShareRequest, nowMs: number): boolean {
    this.#advance(nowMs);
    const used = this.#accounts.peek(accountId)?.sumAt(this.#slot) ?? 0;
    return used + tokens <= this.#shareOf(accountId, tokensPerMinute);
  }

  /** What an account may use without having to leave anything to others. */
  shareOf(accountId: string, tokensPerMinute: number, nowMs: number): number {
    this.#advance(nowMs);
    return Math.floor(this.#shareOf(accountId, tokensPerMinute));
  }

  /** What an account must leave to others that has used that much, by when it comes back. */
  keptBy(used: number, tokensPerMinute: number, nowMs: number): number {
    this.#advance(nowMs);
    const { kept, untilBackMs } = this.#keptOf(used, tokensPerMinute, nowMs);
    return Math.floor(kept * Math.min(1, untilBackMs / countedMs));
  }

  /** How long the request must wait so that enough is left for the others; 0: it need not wait. */
  waitMs(request: ShareRequest, nowMs: number): number {
    const { tokens, tokensPerMinute } = request;
    // The store refuses requests that never fit.
    if (tokens > tokensPerMinute || this.isLight(request, nowMs)) return 0;
    const used = this.#all.sum;
    const spare = Math.max(0, tokensPerMinute - used - tokens);
    // The others have only these tokens until more come back.
    const { kept, untilBackMs } = this.#keptOf(used, tokensPerMinute, nowMs);
    return spare >= kept ? 0 : Math.max(0, untilBackMs - countedMs * (spare / kept));
  }

  /** Counts granted tokens; returns their slot, for `adjust`. */
  charge(accountId: string, tokens: number, nowMs: number): number {
    this.#advance(nowMs);
    this.#all.add(tokens);
    let own = this.#accounts.touch(accountId);
    if (own === undefined && this.#accounts.size < mostAccounts) {
      own = new SlidingSum(countedSlots, this.#slot);
      this.#accounts.set(accountId, own);
    }
    own?.addAt(this.#slot, tokens);
    return this.#slot;
  }

  /** Corrects granted tokens by the difference to the used ones. */
  adjust(accountId: string, difference: number, slot: number): void {
    this.#all.change(slot, difference);
    this.#accounts.peek(accountId)?.change(slot, difference);
  }

  #keptOf(used: number, tokensPerMinute: number, nowMs: number) {
    const kept = Math.min(Math.ceil(tokensPerMinute * keptShare), used);
    return { kept, untilBackMs: slotLifeMs(this.#all.slotFreeing(kept), nowMs) };
  }

  #shareOf(accountId: string, tokensPerMinute: number): number {
    const isKnown = this.#accounts.peek(accountId) !== undefined;
    return tokensPerMinute / (this.#accounts.size + (isKnown ? 1 : 2));
  }

  #advance(nowMs: number): void {
    this.#slot = Math.max(this.#slot, slotAt(nowMs));
    this.#all.advance(this.#slot);
    this.#accounts.advance(this.#slot);
  }
}
