import { minuteScopes, type LimitScope } from "../domain/limits/limit-scope.ts";
import type { Call } from "../snapshot/call.ts";
import { uncappedTerms } from "./reserve-tokens.ts";

/** All limits that a call of a key is under, its guarantee apart: made once for each call. */
export function planScopes(call: Pick<Call, "caller" | "snapshot">): readonly LimitScope[] {
  const { key, limits, accountLimits } = call.caller;
  const { overrunFactor } = uncappedTerms(call);
  const scopes: LimitScope[] = minuteScopes(keyScopeId(key.limitScope), limits, overrunFactor);
  if (accountLimits !== undefined) {
    scopes.push(...minuteScopes(accountScopeId(key.accountId), accountLimits, overrunFactor));
  }
  return scopes;
}

/** The scope in which all that keys of an account use is counted, where they have a common limit. */
export function accountScopeId(accountId: string): string {
  return `account:${accountId}`;
}

/** The scope of requests for the list of models: as many as the plan has, beside its calls. */
export function listingScopeId(limitScope: string): string {
  return `models:${limitScope}`;
}

export function isListing(scopeId: string): boolean {
  return scopeId.startsWith(listingScopeId(""));
}

/** The scope in which requests and tokens are counted, whatever secret they came with. */
export function keyScopeId(limitScope: string): string {
  return `key:${limitScope}`;
}
