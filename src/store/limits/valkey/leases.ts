import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { LimitScope, LimitState } from "../../../domain/limits/limit-scope.ts";
import { slotMs } from "../../../domain/limits/slots.ts";
import type { Lease } from "./read-reply.ts";
import type { RequestWindows } from "./scopes.ts";

/** What a key may use until a slot of the server ends, without asking. The server has charged it. */
interface ActiveLease {
  readonly slot: number;
  /** In the time of this process, when the slot has certainly not ended. */
  readonly endsAtMs: number;
  /** What was left when it was granted. */
  readonly state: LimitState;
  requests: number;
  tokens: number;
  overrun: number;
}

interface LeasedKey {
  readonly names: RequestWindows;
  /** What the key uses in this slot, and has used in the one before. */
  slot: number;
  used: Lease;
  before: Lease;
  lease: ActiveLease | undefined;
}

/** What a lease was granted for, and did not use. */
export interface LeaseRest {
  readonly names: RequestWindows;
  readonly slot: number;
  readonly rest: Lease;
}

export interface Granted {
  readonly slot: number;
  readonly state: LimitState;
  /** When the server was asked, and its time when it answered: a slot ends no later than that tells. */
  readonly sentAtMs: number;
  readonly serverMs: number;
}

const none: Lease = { requests: 0, tokens: 0, overrun: 0 };
/** With fewer requests a second, a key is not worth a lease. */
const busyRequests = 8;
const margin = 1.25;
const keptMs = 10_000;

/**
 * Leases of busy keys: what the key used in the last second plus 25 %, for the rest of the second.
 * They are never recalled; what was not used goes back when the second has ended.
 */
export class Leases {
  readonly #keys: AgingMap<LeasedKey>;
  readonly #active = new Set<LeasedKey>();

  constructor(nowMs: number) {
    this.#keys = new AgingMap(keptMs, nowMs);
  }

  /** What to lease with the next decision of a key that is busy. */
  wish(names: RequestWindows, slot: number): Lease | undefined {
    const key = this.#keyOf(names, slot);
    if (key === undefined || key.before.requests < busyRequests) return undefined;
    const { used, before } = key;
    const more = (of: keyof Lease): number =>
      Math.max(Math.ceil(before[of] * margin) - used[of], Math.ceil(before[of] * (margin - 1)));
    return { requests: more("requests"), tokens: more("tokens"), overrun: more("overrun") };
  }

  granted(names: RequestWindows, lease: Lease, { slot, state, sentAtMs, serverMs }: Granted): void {
    const key = this.#keyOf(names, slot);
    if (key === undefined) return;
    const { lease: earlier } = key;
    if (earlier !== undefined && earlier.slot === slot) {
      for (const of of ["requests", "tokens", "overrun"] as const) earlier[of] += lease[of];
      return;
    }
    // The caller has given back what an earlier one did not use.
    const endsAtMs = sentAtMs + (slot + 1) * slotMs - serverMs - 1;
    key.lease = { slot, endsAtMs, state, ...lease };
    this.#active.add(key);
  }

  /** Charges a lease; undefined: there is none, or too little is left of it. */
  take(
    names: RequestWindows,
    asked: Lease,
    nowMs: number,
  ): { readonly slot: number; readonly state: LimitState } | undefined {
    const lease = this.#leaseAt(names, nowMs);
    if (lease === undefined) return undefined;
    const { requests, tokens, overrun } = asked;
    const isEnough = lease.requests >= requests && lease.tokens >= tokens;
    if (!isEnough || lease.overrun < overrun) return undefined;
    lease.requests -= requests;
    lease.tokens -= tokens;
    lease.overrun -= overrun;
    this.note(names, asked, lease.slot);
    const { state } = lease;
    return {
      slot: lease.slot,
      state: {
        ...state,
        remainingRequests: state.remainingRequests + lease.requests,
        remainingTokens: state.remainingTokens + lease.tokens,
      },
    };
  }

  /** Returns to the lease what was charged under it in its slot; false: it has ended. */
  giveBack({ names, slot, rest }: LeaseRest, nowMs: number): boolean {
    const lease = this.#leaseAt(names, nowMs);
    if (lease?.slot !== slot) return false;
    for (const of of ["requests", "tokens", "overrun"] as const) lease[of] += rest[of];
    return true;
  }

  /** Counts what a key uses. */
  note(names: RequestWindows, asked: Lease, slot: number): void {
    const key = this.#keyOf(names, slot);
    if (key === undefined) return;
    const { requests, tokens, overrun } = key.used;
    key.used = {
      requests: requests + asked.requests,
      tokens: tokens + asked.tokens,
      overrun: overrun + asked.overrun,
    };
  }

  /** Whether a key is busy enough that corrections of its calls may wait for each other. */
  isBusy(names: RequestWindows): boolean {
    return (this.#keys.peek(nameOf(names))?.before.requests ?? 0) >= busyRequests;
  }

  /** Leases that have ended, with what they did not use. */
  takeEnded(nowMs: number): readonly LeaseRest[] {
    this.#keys.advance(nowMs);
    const ended: LeaseRest[] = [];
    for (const key of this.#active) {
      const { lease, names } = key;
      if (lease !== undefined && nowMs < lease.endsAtMs) continue;
      this.#active.delete(key);
      key.lease = undefined;
      if (lease !== undefined) ended.push({ names, slot: lease.slot, rest: { ...lease } });
    }
    return ended;
  }

  #leaseAt(names: RequestWindows, nowMs: number): ActiveLease | undefined {
    const lease = this.#keys.peek(nameOf(names))?.lease;
    return lease !== undefined && nowMs < lease.endsAtMs ? lease : undefined;
  }

  #keyOf(names: RequestWindows, slot: number): LeasedKey | undefined {
    if (!isLeasable(names.scopes)) return undefined;
    const name = nameOf(names);
    let key = this.#keys.touch(name);
    if (key === undefined) {
      key = { names, slot, used: none, before: none, lease: undefined };
      this.#keys.set(name, key);
    }
    if (slot > key.slot) {
      key.before = slot === key.slot + 1 ? key.used : none;
      key.used = none;
      key.slot = slot;
    }
    return key;
  }
}

/** Guarantees and pools have no leases: their windows are longer, or belong to several accounts. */
function isLeasable(scopes: readonly LimitScope[]): boolean {
  const isOfAccount = scopes.every(
    ({ window, owner }) => window === "minute" && owner !== undefined,
  );
  return isOfAccount && scopes.some(({ unit }) => unit === "tokens");
}

function nameOf({ keys }: RequestWindows): string {
  return keys.join(" ");
}
