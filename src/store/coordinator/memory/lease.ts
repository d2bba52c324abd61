import { fewestLeasedRequests } from "../../../domain/limits/lease-rules.ts";
import { overrunLimit, type Demand, type ScopeCharge } from "./scope-charge.ts";

/** What is charged in one slot for calls that another process may admit in that slot. */
export interface Lease {
  readonly slot: number;
  readonly charges: readonly ScopeCharge[];
  readonly amounts: LeaseAmounts;
}

export interface LeaseAmounts extends Demand {
  /** What these calls may use beyond their reserved tokens. */
  readonly overrun: number;
}

/** A call that was admitted under a lease. */
export interface LeasedCall {
  readonly callId: string;
  readonly tokens: number;
  readonly overrun: number;
}

/** At most one of `parts` of what each scope has left. Undefined: too little, or no lease at all. */
export function amountsOfLease(
  charges: readonly ScopeCharge[],
  wanted: LeaseAmounts,
  parts: number,
): LeaseAmounts | undefined {
  let { requests, tokens, overrun } = wanted;
  const partOf = (left: number): number => Math.floor(Math.max(0, left) / parts);
  for (const { scope, window, origin } of charges) {
    if (scope.window !== "minute" || scope.isShared === true || origin !== "known") {
      return undefined;
    }
    const left = partOf(scope.limit - window.charged);
    if (scope.unit === "requests") requests = Math.min(requests, left);
    else {
      tokens = Math.min(tokens, left);
      overrun = Math.min(overrun, partOf(overrunLimit(scope) - window.overrun));
    }
  }
  return requests < fewestLeasedRequests ? undefined : { requests, tokens, overrun };
}
