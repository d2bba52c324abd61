import type { Limits } from "../../domain/limits/plan.ts";
import type { LimitsView } from "../contract/values.ts";

export function viewLimits(limits: Limits | undefined): LimitsView | null {
  if (limits === undefined) return null;
  return {
    requests_per_minute: limits.requestsPerMinute,
    tokens_per_minute: limits.tokensPerMinute,
  };
}

export function readLimits(view: LimitsView): Limits {
  return {
    requestsPerMinute: view.requests_per_minute,
    tokensPerMinute: view.tokens_per_minute,
  };
}
