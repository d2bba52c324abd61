import { type CallRouting, keptRouting, readRouting } from "../../../domain/usage/call-routing.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import { type ColumnTypes, isStorable, present, storableTexts } from "../row.ts";
import type { UsageRow } from "../tables.ts";

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

const counts = [
  "startedAt",
  "inputTokens",
  "outputTokens",
  "status",
  "cachedInputTokens",
  "attempts",
] as const;
const texts = [
  "id",
  "environment",
  "accountId",
  "applicationId",
  "application",
  "keyId",
  "model",
] as const;

/**
 * The call as the database will return it, in texts that every database can store. Throws
 * `RefusedRows` for a value that no column can hold.
 */
export function storable(record: UsageRecord): UsageRecord {
  const { target = "", code = "", firstEventMs = 0 } = record;
  const { cacheWriteTokens = 0, reservedTokens = 0, durationMs } = record;
  const areCounts = isCount(cacheWriteTokens) && isCount(reservedTokens);
  if (!areCounts || !counts.every((field) => isCount(record[field]))) {
    throw new RefusedRows("a count of a call is not a whole number");
  }
  if (!Number.isFinite(durationMs) || !Number.isFinite(firstEventMs)) {
    throw new RefusedRows("a duration of a call is not a number");
  }
  if (!texts.every((field) => typeof record[field] === "string")) {
    throw new RefusedRows("a call lacks a text");
  }
  const isGiven = isStorable(target) && isStorable(code);
  return isGiven && texts.every((field) => isStorable(record[field]))
    ? record
    : storableTexts(record);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
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
