import type { Clock } from "../domain/clock.ts";
import {
  minuteScopes,
  type CountedRequest,
  type RequestKind,
} from "../domain/limits/limit-scope.ts";
import type { CountDecision, LimitStore } from "../store/limits/limit-store.ts";
import { admissionRefusal } from "./admission-refusal.ts";
import type { Call } from "../snapshot/call.ts";
import { listingScopeId, planScopes, scopeTerms } from "./plan-scopes.ts";

/** A request before its body is read. */
export type ArrivingRequest = Pick<Call, "caller" | "environment" | "snapshot">;

export interface CountServices {
  readonly limits: LimitStore;
  readonly clock: Clock;
}

/**
 * Counts a request of a key on arrival, independent of its outcome. Throws 429, or 503 when nobody
 * can decide. Undefined: the plan has no request left, but the key has provisioned throughput, whose
 * requests are not limited.
 */
export function countRequest(
  kind: RequestKind,
  request: ArrivingRequest,
  services: CountServices,
): CountedRequest | undefined | Promise<CountedRequest | undefined> {
  const isCall = kind === "call";
  const countedOf = (decision: CountDecision): CountedRequest | undefined => {
    if (decision.isAdmitted) return decision.counted;
    if (isCall && request.caller.key.provisionedUnits > 0) return undefined;
    const now = services.clock.now();
    throw admissionRefusal({ request: { call: request }, decision, askedTokens: 0, now });
  };
  const decision = services.limits.count(isCall ? planScopes(request) : listingScopes(request));
  return decision instanceof Promise ? decision.then(countedOf) : countedOf(decision);
}

function listingScopes(request: ArrivingRequest) {
  const { key, limits } = request.caller;
  return minuteScopes(listingScopeId(key.limitScope), limits, scopeTerms(request));
}
