import { type CallRouting, keptRouting, readRouting } from "../../../domain/usage/call-routing.ts";
import { isObject } from "../../../domain/json-object.ts";
import type { CallTags, UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import { type ColumnTypes, isStorableText, present, storableTexts } from "../row.ts";
import type { SqlValue, UsageRow } from "../tables.ts";

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
  dialect: "text",
  target: "text",
  capacity_class: "text",
  input_tokens: "bigint",
  output_tokens: "bigint",
  cached_input_tokens: "bigint",
  cache_write_tokens: "bigint",
  cache_write_1h_tokens: "bigint",
  images: "bigint",
  service_tier: "text",
  cost_nano: "bigint",
  price_version: "bigint",
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
  via: "text",
  end_user: "text",
  tags: "text",
} as const satisfies ColumnTypes;

const columns = Object.entries(callColumns).map(([name, type]) => ({
  field: name.replaceAll(/_./g, (end) => end.slice(1).toUpperCase()),
  type,
}));

/**
 * The call as the database will return it, in texts that every database can store. Throws
 * `RefusedRows` for a value that no column can hold.
 */
export function storable(record: UsageRecord): UsageRecord {
  const values = toValues(record);
  const wrong = columns.find(({ type }, place) => !fits(values[place] ?? null, type));
  if (wrong !== undefined) throw new RefusedRows(`${wrong.field} of a call is no ${wrong.type}`);
  const isStorable = values.every((value) => typeof value !== "string" || isStorableText(value));
  return isStorable ? record : storableTexts(record);
}

/** The database refuses null where there must be a value. */
function fits(value: SqlValue, type: ColumnTypes[string]): boolean {
  if (value === null) return true;
  if (type === "text") return typeof value === "string";
  if (type === "double precision") return Number.isFinite(value);
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Values in the order of `callColumns`. */
export function toValues(record: UsageRecord): readonly (string | number | null)[] {
  const { routing, tags, cacheWriteTokens = 0, mayBeBilledTwice = false } = record;
  const { charge: _, refusedBy: _refused, cacheWrite1hTokens = 0, ...stored } = record;
  const kept = routing && JSON.stringify(keptRouting(routing));
  const row: Readonly<Record<string, string | number | boolean | undefined>> = {
    ...stored,
    routing: kept,
    tags: tags && JSON.stringify(tags),
    cacheWriteTokens,
    cacheWrite1hTokens,
    mayBeBilledTwice,
  };
  return columns.map(({ field }) => {
    const value = row[field] ?? null;
    return typeof value === "boolean" ? Number(value) : value;
  });
}

export function toRecord(row: UsageRow): UsageRecord {
  const {
    sequence: _,
    routing,
    mayBeBilledTwice,
    reservedTokens,
    cacheWriteTokens,
    cacheWrite1hTokens,
    images,
    serviceTier,
    costNano,
    priceVersion,
    repricedNano,
    tags,
    ...always
  } = row;
  return {
    ...present(always),
    isStreamed: row.isStreamed === 1,
    ...(routing !== null && { routing: parseRouting(routing) }),
    ...(mayBeBilledTwice === 1 && { mayBeBilledTwice: true }),
    ...(reservedTokens !== null && { reservedTokens }),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...(cacheWrite1hTokens > 0 && { cacheWrite1hTokens }),
    ...(images !== null && { images }),
    ...(serviceTier !== null && { serviceTier }),
    ...(costNano !== null && { costNano }),
    ...(priceVersion !== null && { priceVersion }),
    ...(repricedNano !== null && { repricedNano }),
    ...(tags !== null && { tags: readTags(tags) }),
  };
}

/** Nothing of an unreadable text. */
export function readTags(text: string): CallTags {
  try {
    const values: unknown = JSON.parse(text);
    const entries = isObject(values) ? Object.entries(values) : [];
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return {};
  }
}

/** Undefined for an unreadable text; the call counts anyway. */
function parseRouting(text: string): CallRouting | undefined {
  try {
    return readRouting(JSON.parse(text));
  } catch {
    return undefined;
  }
}
