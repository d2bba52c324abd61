import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { keptRouting, readRouting } from "../../domain/usage/call-routing.ts";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";

/** One record of a call in the spool: a line of JSON. */
export type SpoolRecord =
  /** Everything needed to bill the call if it is interrupted. */
  | { readonly kind: "open"; readonly call: OpenedCall }
  | { readonly kind: "checkpoint"; readonly id: string; readonly delivered: Delivered }
  /** Complete in itself, because the record of the open call may be damaged. */
  | { readonly kind: "close"; readonly record: UsageRecord };

export interface Delivered {
  readonly outputTokens: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The line of a record, with its end. */
export function writeRecord(record: SpoolRecord): string {
  return `${JSON.stringify(valueOf(record))}\n`;
}

/** Reads the line of a record; its frame has a checksum. Undefined for text that is none. */
export function readRecord(line: string): SpoolRecord | undefined {
  const { open, close, checkpoint } = parse(line);
  if (isCall(open)) return { kind: "open", call: open };
  if (isCall(checkpoint)) {
    const { id, outputTokens, at } = checkpoint;
    return { kind: "checkpoint", id, delivered: { outputTokens, at } };
  }
  if (!isUsage(close)) return undefined;
  // An unreadable one is dropped: it only explains the row.
  return { kind: "close", record: { ...close, routing: readRouting(close.routing) } };
}

function valueOf(record: SpoolRecord): unknown {
  switch (record.kind) {
    case "open":
      return { open: record.call };
    case "checkpoint":
      return { checkpoint: { id: record.id, ...record.delivered } };
    case "close": {
      const { routing } = record.record;
      if (routing === undefined) return { close: record.record };
      return { close: { ...record.record, routing: keptRouting(routing) } };
    }
  }
}

interface WrittenCheckpoint extends Delivered {
  readonly id: string;
}

function parse(line: string): JsonObject {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isCall(value: unknown): value is OpenedCall & WrittenCheckpoint {
  return isObject(value) && typeof value["id"] === "string";
}

function isUsage(value: unknown): value is UsageRecord {
  return isCall(value);
}
