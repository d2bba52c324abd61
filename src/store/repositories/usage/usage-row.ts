import { keptRouting } from "../../../domain/usage/kept-routing.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";

export const usageColumns = [
  "id",
  "started_at",
  "environment",
  "account_id",
  "application_id",
  "application",
  "key_id",
  "model",
  "target",
  "capacity_class",
  "input_tokens",
  "output_tokens",
  "cached_input_tokens",
  "usage_source",
  "outcome",
  "status",
  "code",
  "is_streamed",
  "attempts",
  "first_event_ms",
  "duration_ms",
  "routing",
  "may_be_billed_twice",
  "reserved_tokens",
  "cache_write_tokens",
] as const;

export type ColumnValue = string | number | null;

/** Values in the order of `usageColumns`. */
export function toValues(record: UsageRecord): ColumnValue[] {
  return [
    record.id,
    record.startedAt,
    record.environment,
    record.accountId,
    record.applicationId,
    record.application,
    record.keyId,
    record.model,
    record.target ?? null,
    record.capacityClass,
    record.inputTokens,
    record.outputTokens,
    record.cachedInputTokens,
    record.usageSource,
    record.outcome,
    record.status,
    record.code ?? null,
    record.isStreamed ? 1 : 0,
    record.attempts,
    record.firstEventMs ?? null,
    record.durationMs,
    record.routing === undefined ? null : JSON.stringify(keptRouting(record.routing)),
    record.mayBeBilledTwice === true ? 1 : 0,
    record.reservedTokens ?? null,
    record.cacheWriteTokens ?? 0,
  ];
}
