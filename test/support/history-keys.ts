import type { Limits } from "../../src/domain/limits/plan.ts";
import { minuteScopes, type LimitScope } from "../../src/domain/limits/limit-scope.ts";

/** Two keys share the ceiling of their account; the third has an account of its own. */
export function keysOfHistory(
  plan: Limits,
  ceiling: Limits,
  terms: { readonly overrunFactor?: number } = {},
): readonly (readonly LimitScope[])[] {
  return [
    ...["key a", "key b"].map((id) => [
      ...minuteScopes(id, plan, { owner: "shop", ...terms }),
      ...minuteScopes("shop", ceiling, { owner: "shop", ...terms }),
    ]),
    minuteScopes("key c", plan, { owner: "key c", ...terms }),
  ];
}
