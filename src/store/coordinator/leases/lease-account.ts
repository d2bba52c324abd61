import { fewestLeasedRequests } from "../../../domain/limits/lease-rules.ts";
import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { slotMs } from "../../../domain/limits/slots.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";

/** Differs for each lease of a process. */
export type LeaseId = number;

/** What this process expects to admit within a second under the scopes of an account. */
export interface LeaseWish extends Readonly<Amounts> {
  /** The number of the account here. */
  readonly account: number;
}

/** What was charged for a wish, with what is left apart from it. */
export interface GrantedLease extends Readonly<Amounts> {
  readonly id: LeaseId;
  readonly account: number;
  readonly slot: number;
  /** When the slot ends, in milliseconds after the decision. */
  readonly endsInMs: number;
  readonly state: LimitState;
}

/** What no call used of a lease that has ended, and the calls that still run. */
export interface LeaseRest extends Readonly<Amounts> {
  readonly id: LeaseId;
  readonly calls: ReadonlyMap<string, Readonly<LeasedCall>>;
}

/** What calls may use in the rest of a slot, already charged where all limits are decided. */
export interface Lease extends Amounts {
  readonly id: LeaseId;
  readonly account: LeaseAccount;
  readonly slot: number;
  /** By the monotonic clock of this process. The slot ends at this time or later. */
  readonly endsAt: number;
  readonly startedAt: number;
  /** What was left apart from the lease when it began. */
  readonly state: LimitState;
  readonly granted: Readonly<Amounts>;
  /** Calls under it that are not settled, by their ids. */
  readonly calls: Map<string, LeasedCall>;
}

/** A call's part of its lease. */
export interface LeasedCall {
  tokens: number;
  /** What it may use beyond its tokens. */
  overrun: number;
}

export interface Amounts {
  requests: number;
  tokens: number;
  /** What calls may use beyond their tokens. */
  overrun: number;
}

/** How much more is asked for than was used in a second. */
const growth = 1.25;

/** Calls of this worker under the same scopes. */
export class LeaseAccount {
  readonly number: number;
  lease: Lease | undefined;
  #askedAt: number | undefined;
  #quietUntil = Number.NEGATIVE_INFINITY;
  #second = Number.NEGATIVE_INFINITY;
  /** Use in this second and in the previous one. */
  #current: Amounts = nothing();
  #previous: Amounts = nothing();

  constructor(number: number) {
    this.number = number;
  }

  note({ requests, tokens, overrun }: Amounts, nowMs: number): void {
    this.#advance(nowMs);
    this.#current.requests += requests;
    this.#current.tokens += tokens;
    this.#current.overrun += overrun;
  }

  leaseAt(nowMs: number): Lease | undefined {
    return this.lease !== undefined && nowMs < this.lease.endsAt ? this.lease : undefined;
  }

  /** Undefined: a lease was already asked for, is large enough, or would save nothing. */
  wish(nowMs: number): LeaseWish | undefined {
    const lease = this.leaseAt(nowMs);
    if (nowMs < this.#quietUntil) return undefined;
    if (this.#askedAt !== undefined || (lease !== undefined && !isMostlyUsed(lease))) {
      return undefined;
    }
    this.#advance(nowMs);
    const wanted = (unit: keyof Amounts): number =>
      Math.floor(growth * Math.max(this.#current[unit], this.#previous[unit]));
    if (wanted("requests") < fewestLeasedRequests) return undefined;
    this.#askedAt = nowMs;
    return {
      account: this.number,
      requests: wanted("requests"),
      tokens: wanted("tokens"),
      overrun: wanted("overrun"),
    };
  }

  /** When the lease whose answer is pending was asked for; undefined: none is pending. */
  get askedAt(): number | undefined {
    return this.#askedAt;
  }

  /** The acquisition that carried a wish has been answered, or never will be. */
  answered(): void {
    this.#askedAt = undefined;
  }

  /** There was nothing to lease: the next wish waits for the next second. */
  declined(nowMs: number): void {
    this.#quietUntil = nowMs + slotMs;
  }

  isIdle(nowMs: number): boolean {
    if (this.lease !== undefined || this.#askedAt !== undefined) return false;
    this.#advance(nowMs);
    return this.#current.requests + this.#previous.requests === 0;
  }

  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    if (second === this.#second) return;
    this.#previous = second === this.#second + 1 ? this.#current : nothing();
    this.#current = nothing();
    this.#second = second;
  }
}

/**
 * Equal for equal limits of the same owners. Undefined for scopes that cannot be leased: only a
 * minute's use ends with its slot.
 */
export function accountKey(scopes: readonly LimitScope[]): string | undefined {
  let key = "";
  for (const { id, unit, limit, window, owner = "", isShared = false } of scopes) {
    if (window !== "minute" || isShared) return undefined;
    key += `${id} ${unit} ${limit} ${owner} `;
  }
  return key;
}

/** Use of one second. */
function nothing(): Amounts {
  return { requests: 0, tokens: 0, overrun: 0 };
}

function isMostlyUsed({ granted, ...left }: Lease): boolean {
  return (
    left.requests * 2 < granted.requests ||
    left.tokens * 2 < granted.tokens ||
    left.overrun * 2 < granted.overrun
  );
}
