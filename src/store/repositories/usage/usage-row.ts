import { type CallRouting, keptRouting, readRouting } from "../../../domain/usage/call-routing.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import { present, storableText } from "../row.ts";
import type { UsageRow } from "../tables.ts";
import type { ColumnTypes } from "./row-set.ts";

/** The columns of a call. */
export const callColumns = {
  id: "text",
  started_at: "bigint",
  environment: "text",
  account_id: "text",
  application_id: "text",
  application: "text",
  key_id: "text",
  model: "text",
  target: "text",
  capacity_class: "text",
  input_tokens: "bigint",
  output_tokens: "bigint",
  cached_input_tokens: "bigint",
  cache_write_tokens: "bigint",
  usage_source: "text",
  outcome: "text",
  status: "bigint",
  code: "text",
  is_streamed: "bigint",
  attempts: "bigint",
  first_event_ms: "double precision",
  duration_ms: "double precision",
  routing: "text",
  may_be_billed_twice: "bigint",
  reserved_tokens: "bigint",
} as const satisfies ColumnTypes;

/**
 * The call as the database will return it, in texts that every database can store. Throws
 * `RefusedRows` for a value that no column can hold.
 */
export function storable(record: UsageRecord): UsageRecord {
  const { target, code, firstEventMs, reservedTokens, cacheWriteTokens = 0 } = record;
  const counts = [record.startedAt, record.inputTokens, record.outputTokens, record.status];
  const others = [record.cachedInputTokens, record.attempts, cacheWriteTokens, reservedTokens ?? 0];
  if (![...counts, ...others].every((count) => Number.isSafeInteger(count) && count >= 0)) {
    throw new RefusedRows("a count of a call is not a whole number");
  }
  if (!Number.isFinite(record.durationMs) || !Number.isFinite(firstEventMs ?? 0)) {
    throw new RefusedRows("a duration of a call is not a number");
  }
  return {
    ...record,
    id: textOf(record.id),
    environment: textOf(record.environment),
    accountId: textOf(record.accountId),
    applicationId: textOf(record.applicationId),
    application: textOf(record.application),
    keyId: textOf(record.keyId),
    model: textOf(record.model),
    target: target === undefined ? undefined : textOf(target),
    code: code === undefined ? undefined : textOf(code),
  };
}

function textOf(value: unknown): string {
  if (typeof value === "string") return storableText(value);
  throw new RefusedRows("a call lacks a text");
}

/** Values in the order of `callColumns`. */
export function toValues(record: UsageRecord): readonly (string | number | null)[] {
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
    record.cacheWriteTokens ?? 0,
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
  ];
}

export function toRecord(row: UsageRow): UsageRecord {
  const {
    sequence: _,
    routing,
    mayBeBilledTwice,
    reservedTokens,
    cacheWriteTokens,
    ...always
  } = row;
  return {
    ...present(always),
    isStreamed: row.isStreamed === 1,
    ...(routing !== null && { routing: parseRouting(routing) }),
    ...(mayBeBilledTwice === 1 && { mayBeBilledTwice: true }),
    ...(reservedTokens !== null && { reservedTokens }),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
  };
}

/** Undefined for an unreadable text; the call counts anyway. */
function parseRouting(text: string): CallRouting | undefined {
  try {
    return readRouting(JSON.parse(text));
  } catch {
    return undefined;
  }
}
