import type { Clock } from "../../../domain/clock.ts";
import type { CountedRequest, LimitScope } from "../../../domain/limits/limit-scope.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";
import { countedSlots, slotMs } from "../../../domain/limits/slots.ts";
import { isTokenCount } from "../../../domain/limits/token-count.ts";
import type { LimitRequest } from "../../store.ts";
import {
  accountKey,
  LeaseAccount,
  type GrantedLease,
  type Lease,
  type LeaseId,
  type LeaseRest,
  type LeaseWish,
} from "./lease-account.ts";

export interface LeasesOptions {
  readonly clock: Clock;
  /** Whether to ask for leases. */
  readonly areWanted: boolean;
  /** Called with the unused rest of leases that have ended, and with their calls that still run. */
  readonly onEnded: (rests: readonly LeaseRest[]) => void;
}

/** A call has used so many tokens; `isFinal`: and has ended. */
export interface CallUse {
  readonly callId: string;
  readonly tokens: number;
  readonly isFinal: boolean;
}

/** A call was admitted under a lease. */
export interface Leased {
  readonly lease: Lease;
  readonly state: LimitState;
}

/** A request that was counted under a lease. */
class LeasedRequest implements CountedRequest {
  readonly scopes: readonly LimitScope[];
  readonly lease: Lease;

  constructor(scopes: readonly LimitScope[], lease: Lease) {
    this.scopes = scopes;
    this.lease = lease;
  }

  get slot(): number {
    return this.lease.slot;
  }
}

/** All leases of a slot end within this time of each other, so that one timer ends them. */
const endDelayMs = 5;
/** Most leases at once; beyond it, none is asked for. */
const leaseLimit = 10_000;
const sweepIntervalMs = 1_000;

/** What this process may admit without asking, as it is charged already. */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leases = new Map<LeaseId, Lease>();
  readonly #accounts = new Map<string, LeaseAccount>();
  readonly #byNumber = new Map<number, LeaseAccount>();
  #lastNumber = 0;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #isEndPlanned = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Undefined: no lease has a request left. */
  count(scopes: readonly LimitScope[]): CountedRequest | undefined {
    const now = this.#options.clock.monotonic();
    const account = this.#accountOf(scopes);
    account?.note({ requests: 1, tokens: 0, overrun: 0 }, now);
    const lease = account?.leaseAt(now);
    if (lease === undefined || lease.requests === 0) return undefined;
    lease.requests -= 1;
    return new LeasedRequest(scopes, lease);
  }

  /** Gives a request back to its lease; false if the lease has ended. */
  uncount(counted: CountedRequest): boolean {
    if (!(counted instanceof LeasedRequest)) return false;
    const { lease } = counted;
    if (this.#leases.get(lease.id) !== lease) return false;
    lease.requests += 1;
    return true;
  }

  /** Undefined: no lease has enough left. */
  acquire(request: LimitRequest): Leased | undefined {
    const { callId, tokens, mostTokens = tokens, counted } = request;
    const now = this.#options.clock.monotonic();
    const account = this.accountOf(request);
    if (account === undefined || !isTokenCount(tokens)) return undefined;
    const requests = counted === undefined ? 1 : 0;
    const overrun = Math.max(0, mostTokens - tokens);
    account.note({ requests, tokens, overrun }, now);
    const lease = account.leaseAt(now);
    if (lease === undefined) return undefined;
    if (lease.requests < requests || lease.tokens < tokens || lease.overrun < overrun) {
      return undefined;
    }
    lease.requests -= requests;
    lease.tokens -= tokens;
    lease.overrun -= overrun;
    lease.calls.set(callId, { tokens, overrun });
    return { lease, state: stateOf(lease, now) };
  }

  /**
   * Charges what a call has used to its lease, which gets back what a settled call did not use.
   * False for a call without a lease. If the lease is too small, or already over, it ends.
   */
  charge(account: LeaseAccount | undefined, { callId, tokens, isFinal }: CallUse): boolean {
    const lease = account?.lease;
    const call = lease?.calls.get(callId);
    if (lease === undefined || call === undefined) return false;
    // An invalid count keeps the charge.
    const more = isTokenCount(tokens) ? tokens - call.tokens : 0;
    if (!isFinal && more <= 0) return true;
    // Use of a running call counts in the slot in which it happens.
    const isOver = !isFinal && this.#options.clock.monotonic() >= lease.endsAt;
    if (isOver || more > lease.tokens) {
      this.#end([lease]);
      return false;
    }
    const overrun = isFinal ? call.overrun : Math.min(more, call.overrun);
    lease.tokens -= more;
    lease.overrun += overrun;
    call.tokens += more;
    call.overrun -= overrun;
    if (isFinal) lease.calls.delete(callId);
    return true;
  }

  /** Undefined: nothing is leased for its scopes. */
  accountOf({
    scopes,
    counted,
  }: Pick<LimitRequest, "scopes" | "counted">): LeaseAccount | undefined {
    return counted instanceof LeasedRequest ? counted.lease.account : this.#accountOf(scopes);
  }

  /** A lease to ask for together with an acquisition that is sent now; undefined: none. */
  wish(account: LeaseAccount | undefined): LeaseWish | undefined {
    if (!this.#options.areWanted || this.#leases.size >= leaseLimit) return undefined;
    const wish = account?.wish(this.#options.clock.monotonic());
    // The rest of the lease is free again before the next one is decided.
    if (wish !== undefined && account?.lease !== undefined) this.#end([account.lease]);
    return wish;
  }

  granted({ id, account: number, slot, endsInMs, state, ...amounts }: GrantedLease): void {
    const account = this.#byNumber.get(number);
    const askedAt = account?.askedAt;
    if (account === undefined || askedAt === undefined) {
      return this.#options.onEnded([{ id, ...amounts, calls: new Map() }]);
    }
    account.lease = {
      id,
      account,
      slot,
      // The time starts with the request for the lease, so the lease ends before its slot does.
      endsAt: askedAt + endsInMs,
      startedAt: this.#options.clock.monotonic(),
      state,
      granted: amounts,
      calls: new Map(),
      ...amounts,
    };
    this.#leases.set(id, account.lease);
    this.#planEnd();
  }

  /** Gives everything back. */
  end(): void {
    this.#end([...this.#leases.values()]);
  }

  /** These leases are demanded back. */
  recall(ids: readonly LeaseId[]): void {
    this.#end(ids.map((id) => this.#leases.get(id)).filter((lease) => lease !== undefined));
  }

  /** Another process decides from now on; it has counted all leases as used. */
  forget(): void {
    for (const { account } of this.#leases.values()) account.lease = undefined;
    this.#leases.clear();
  }

  #accountOf(scopes: readonly LimitScope[]): LeaseAccount | undefined {
    const key = accountKey(scopes);
    if (key === undefined) return undefined;
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    this.#sweep();
    this.#lastNumber += 1;
    const account = new LeaseAccount(this.#lastNumber);
    this.#accounts.set(key, account);
    this.#byNumber.set(account.number, account);
    return account;
  }

  #sweep(): void {
    const nowMs = this.#options.clock.monotonic();
    if (nowMs < this.#sweptAt + sweepIntervalMs) return;
    this.#sweptAt = nowMs;
    for (const [key, account] of this.#accounts) {
      if (!account.isIdle(nowMs)) continue;
      this.#accounts.delete(key);
      this.#byNumber.delete(account.number);
    }
  }

  #planEnd(): void {
    if (this.#isEndPlanned || this.#leases.size === 0) return;
    this.#isEndPlanned = true;
    const { clock } = this.#options;
    let first = Number.POSITIVE_INFINITY;
    for (const { endsAt } of this.#leases.values()) first = Math.min(first, endsAt);
    clock.schedule(
      () => {
        this.#isEndPlanned = false;
        const now = clock.monotonic();
        this.#end([...this.#leases.values()].filter(({ endsAt }) => endsAt <= now));
        this.#planEnd();
      },
      first - clock.monotonic() + endDelayMs,
    );
  }

  #end(leases: readonly Lease[]): void {
    if (leases.length === 0) return;
    for (const { id, account } of leases) {
      this.#leases.delete(id);
      account.lease = undefined;
    }
    this.#options.onEnded(leases.map(restOf));
  }
}

function restOf({ id, requests, tokens, overrun, calls }: Lease): LeaseRest {
  return { id, requests, tokens, overrun, calls };
}

/** After a call under the lease. */
function stateOf(lease: Lease, nowMs: number): LimitState {
  const { state, granted } = lease;
  // The use of the current slot is the newest.
  const resetMs = lease.endsAt - nowMs + (countedSlots - 1) * slotMs;
  const agedMs = (ms: number): number => Math.max(0, ms - (nowMs - lease.startedAt));
  const hasTokens = lease.tokens < granted.tokens;
  return {
    limitRequests: state.limitRequests,
    remainingRequests: state.remainingRequests + lease.requests,
    resetRequestsMs: Math.max(agedMs(state.resetRequestsMs), resetMs),
    limitTokens: state.limitTokens,
    remainingTokens: state.remainingTokens + lease.tokens,
    resetTokensMs: Math.max(agedMs(state.resetTokensMs), hasTokens ? resetMs : 0),
  };
}
