import type { Limits } from "../../../domain/limits/plan.ts";

/** Both set, or neither. */
export interface LimitsColumns {
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
}

export function writeLimits(limits: Limits | undefined): LimitsColumns {
  return {
    requests_per_minute: limits?.requestsPerMinute ?? null,
    tokens_per_minute: limits?.tokensPerMinute ?? null,
  };
}

export function readLimits(row: LimitsColumns): Limits | undefined {
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokensPerMinute } = row;
  if (requestsPerMinute === null || tokensPerMinute === null) return undefined;
  return { requestsPerMinute, tokensPerMinute };
}
