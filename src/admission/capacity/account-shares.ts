import { AgingMap } from "../../domain/limits/aging-map.ts";
import { SlidingSum } from "../../domain/limits/sliding-sum.ts";
import { countedSlots, slotAt, slotLifeMs, slotMs } from "../../domain/limits/slots.ts";

/** Who wants how much of how many tokens per minute. */
export interface ShareRequest {
  readonly accountId: string;
  readonly tokens: number;
  readonly tokensPerMinute: number;
}

/** Share of a minute's tokens that heavy accounts leave to light ones for as long as it lasts. */
const keptShare = 0.2;
const countedMs = countedSlots * slotMs;
/** Of accounts beyond these nobody knows what they used; they count as light. */
const mostAccounts = 10_000;

/**
 * Who used how much of a pool's tokens in the last minute. The tokens of a minute can be used up in
 * its first second, and then nobody has any until a minute later. So an account that has had more
 * than its share leaves some to the others, ever less the sooner what was used comes back. It loses
 * nothing by that: the last of it is free to all just before more is. Counts what this process
 * granted, and decides about turns alone: the bound is the limit store's.
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

  /** Whether an account stays within its share, as if one more account were to come. */
  isLight({ accountId, tokens, tokensPerMinute }: ShareRequest, nowMs: number): boolean {
    this.#advance(nowMs);
    const own = this.#accounts.peek(accountId);
    const used = own?.sumAt(this.#slot) ?? 0;
    const accounts = this.#accounts.size + (own === undefined ? 1 : 0);
    return used + tokens <= tokensPerMinute / (accounts + 1);
  }

  /** Until the request leaves enough to the others; 0: it does now. */
  waitMs(request: ShareRequest, nowMs: number): number {
    const { tokens, tokensPerMinute } = request;
    // What never fits is for the store to say.
    if (tokens > tokensPerMinute || this.isLight(request, nowMs)) return 0;
    const used = this.#all.sum;
    const spare = tokensPerMinute - used - tokens;
    // What comes back later is what the others have to live on until then.
    const kept = Math.min(Math.ceil(tokensPerMinute * keptShare), used);
    if (spare >= kept || kept === 0) return 0;
    const untilBackMs = slotLifeMs(this.#all.slotFreeing(kept), nowMs);
    return Math.max(0, untilBackMs - countedMs * (Math.max(0, spare) / kept));
  }

  /** Counts what was granted; says in which slot, for `adjust`. */
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

  /** Corrects what was granted by how much less, or more, was used. */
  adjust(accountId: string, difference: number, slot: number): void {
    this.#all.change(slot, difference);
    this.#accounts.peek(accountId)?.change(slot, difference);
  }

  #advance(nowMs: number): void {
    this.#slot = Math.max(this.#slot, slotAt(nowMs));
    this.#all.advance(this.#slot);
    this.#accounts.advance(this.#slot);
  }
}
