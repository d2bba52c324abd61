import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { keptRouting, readRouting } from "../../domain/usage/call-routing.ts";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";

/**
 * One record of a call in the spool: a line of JSON. Almost every open call is closed, and what it was
 * opened with is then never needed: that stays text until `readCall` is asked.
 */
export type SpoolRecord =
  /** Everything needed to bill the call if it is interrupted. */
  | { readonly kind: "open"; readonly id: string; readonly line: string }
  | { readonly kind: "checkpoint"; readonly id: string; readonly delivered: Delivered }
  /** Complete in itself, because the record of the open call may be damaged. */
  | { readonly kind: "close"; readonly record: UsageRecord };

export interface Delivered {
  readonly outputTokens: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The line that opens a call. Lines are written without their end. */
export function writeOpen(call: OpenedCall): string {
  return JSON.stringify({ open: call });
}

export function writeCheckpoint(id: string, { outputTokens, at }: Delivered): string {
  return JSON.stringify({ checkpoint: { id, outputTokens, at } });
}

export function writeClose(record: UsageRecord): string {
  const { routing } = record;
  const kept = routing === undefined ? record : { ...record, routing: keptRouting(routing) };
  return JSON.stringify({ close: kept });
}

const openStart = '{"open":{"id":"';

/** Reads the line of a record; its frame has a checksum. Undefined for text that is none. */
export function readRecord(line: string): SpoolRecord | undefined {
  if (line.startsWith(openStart)) {
    const { length } = openStart;
    // Ids of calls are letters and digits, which JSON does not escape.
    return { kind: "open", id: line.slice(length, line.indexOf('"', length)), line };
  }
  const { close, checkpoint } = parse(line);
  if (isCall(checkpoint)) {
    const { id, outputTokens, at } = checkpoint;
    return { kind: "checkpoint", id, delivered: { outputTokens, at } };
  }
  if (!isCall(close)) return undefined;
  if (close.routing === undefined) return { kind: "close", record: close };
  // An unreadable one is dropped: it only explains the row.
  return { kind: "close", record: { ...close, routing: readRouting(close.routing) } };
}

/** The call that a line has opened; undefined for a line that a later version writes otherwise. */
export function readCall(line: string): OpenedCall | undefined {
  const { open } = parse(line);
  return isCall(open) ? open : undefined;
}

function parse(line: string): JsonObject {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isCall(value: unknown): value is UsageRecord & Delivered {
  return isObject(value) && typeof value["id"] === "string";
}
