import type { LimitScope } from "../storage/store.ts";
import type { Call } from "./call.ts";
import { uncappedTerms } from "./reserve-tokens.ts";

/** Everything under which a call of a key is counted, its guarantee apart. */
export function planScopes(call: Pick<Call, "caller" | "snapshot">): readonly LimitScope[] {
  const { key, limits } = call.caller;
  const { overrunFactor } = uncappedTerms(call);
  return [{ id: keyScopeId(key.limitScope), limits, overrunFactor }];
}

/** The scope in which requests and tokens are counted, whatever secret they came with. */
export function keyScopeId(limitScope: string): string {
  return `key:${limitScope}`;
}
