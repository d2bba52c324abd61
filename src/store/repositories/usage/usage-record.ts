import type { CallRouting } from "../../../domain/usage/call-routing.ts";
import { readRouting } from "../../../domain/usage/kept-routing.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { present } from "../row.ts";
import type { UsageRow } from "../tables.ts";

export function toRecord(row: UsageRow): UsageRecord {
  const { routing, mayBeBilledTwice, reservedTokens, cacheWriteTokens, ...always } = row;
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
