import { keptRouting, readRouting } from "../../../domain/usage/kept-routing.ts";
import type { CallRouting } from "../../../domain/usage/call-routing.ts";
import type {
  CallOutcome,
  CapacityClass,
  UsageRecord,
  UsageSource,
} from "../../../domain/usage/usage.ts";

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

/** A row of `usage` as SQLite gives it. */
export interface UsageRow {
  readonly id: string;
  readonly started_at: number;
  readonly environment: string;
  readonly account_id: string;
  readonly application_id: string;
  readonly application: string;
  readonly key_id: string;
  readonly model: string;
  readonly target: string | null;
  readonly capacity_class: CapacityClass;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_input_tokens: number;
  readonly usage_source: UsageSource;
  readonly outcome: CallOutcome;
  readonly status: number;
  readonly code: string | null;
  readonly is_streamed: number;
  readonly attempts: number;
  readonly first_event_ms: number | null;
  readonly duration_ms: number;
  readonly routing: string | null;
  readonly may_be_billed_twice: number;
  readonly reserved_tokens: number | null;
  readonly cache_write_tokens: number;
}

/** In the order of `usageColumns`. */
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

export function toRecord(row: UsageRow): UsageRecord {
  return {
    id: row.id,
    startedAt: row.started_at,
    environment: row.environment,
    accountId: row.account_id,
    applicationId: row.application_id,
    application: row.application,
    keyId: row.key_id,
    model: row.model,
    target: row.target ?? undefined,
    capacityClass: row.capacity_class,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cachedInputTokens: row.cached_input_tokens,
    usageSource: row.usage_source,
    outcome: row.outcome,
    status: row.status,
    code: row.code ?? undefined,
    isStreamed: row.is_streamed === 1,
    attempts: row.attempts,
    firstEventMs: row.first_event_ms ?? undefined,
    durationMs: row.duration_ms,
    ...(row.routing !== null && { routing: parseRouting(row.routing) }),
    ...(row.may_be_billed_twice === 1 && { mayBeBilledTwice: true }),
    ...(row.reserved_tokens !== null && { reservedTokens: row.reserved_tokens }),
    ...(row.cache_write_tokens > 0 && { cacheWriteTokens: row.cache_write_tokens }),
  };
}

/** Undefined for a text that cannot be read: the call counts all the same. */
function parseRouting(text: string): CallRouting | undefined {
  try {
    return readRouting(JSON.parse(text));
  } catch {
    return undefined;
  }
}
