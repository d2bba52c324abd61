import { minuteScopes, type LimitScope, type ScopeTerms } from "../domain/limits/limit-scope.ts";
import type { Call } from "../snapshot/call.ts";
import { uncappedTerms } from "./reserve-tokens.ts";

/** All limits of a call except its guarantee; made once for each call. */
export function planScopes(call: Pick<Call, "caller" | "snapshot">): readonly LimitScope[] {
  const { key, limits, accountLimits } = call.caller;
  const terms = scopeTerms(call);
  const scopes: LimitScope[] = minuteScopes(keyScopeId(key.limitScope), limits, terms);
  if (accountLimits !== undefined) {
    scopes.push(...minuteScopes(accountScopeId(key.accountId), accountLimits, terms));
  }
  return scopes;
}

/** What all scopes of a call have in common. */
export function scopeTerms(call: Pick<Call, "caller" | "snapshot">): ScopeTerms {
  const { overrunFactor, whenLimitsUnavailable } = uncappedTerms(call);
  const isClosedAlone = whenLimitsUnavailable === "closed";
  return { overrunFactor, owner: call.caller.key.accountId, isClosedAlone };
}

/** The scope of a limit that all keys of an account share. */
export function accountScopeId(accountId: string): string {
  return `account:${accountId}`;
}

/** The scope of requests for the list of models, limited like calls but counted apart from them. */
export function listingScopeId(limitScope: string): string {
  return `models:${limitScope}`;
}

export function isListing(scopeId: string): boolean {
  return scopeId.startsWith(listingScopeId(""));
}

/** The scope of a key's requests and tokens, for all of its secrets. */
export function keyScopeId(limitScope: string): string {
  return `key:${limitScope}`;
}
