import { keptRouting, readRouting } from "../../domain/usage/call-routing.ts";
import { usageSources, type OpenedCall, type UsageRecord } from "../../domain/usage/usage.ts";

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

/**
 * Reads the line of a record. Undefined for text that is none. Fields that are unknown here are
 * ignored, so that a version of Sluice can read what a later one has written.
 */
export function readRecord(line: string): SpoolRecord | undefined {
  try {
    return parseRecord(JSON.parse(line));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnreadableField) return undefined;
    throw error;
  }
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

class UnreadableField extends Error {}

function parseRecord(value: unknown): SpoolRecord | undefined {
  const outer = new Fields(value);
  if (outer.has("open")) {
    return { kind: "open", call: parseCall(outer.inner("open")) };
  }
  if (outer.has("close")) {
    return { kind: "close", record: parseUsage(outer.inner("close")) };
  }
  if (!outer.has("checkpoint")) return undefined;
  const fields = outer.inner("checkpoint");
  const delivered = { outputTokens: fields.number("outputTokens"), at: fields.number("at") };
  return { kind: "checkpoint", id: fields.text("id"), delivered };
}

function parseCall(fields: Fields): OpenedCall {
  return {
    id: fields.text("id"),
    startedAt: fields.number("startedAt"),
    environment: fields.text("environment"),
    accountId: fields.text("accountId"),
    applicationId: fields.text("applicationId"),
    application: fields.text("application"),
    keyId: fields.text("keyId"),
    model: fields.text("model"),
    capacityClass: fields.oneOf("capacityClass", ["provisioned", "spillover", "on-demand"]),
    isStreamed: fields.flag("isStreamed"),
    inputTokens: fields.number("inputTokens"),
    reservedTokens: fields.optional("reservedTokens", () => fields.number("reservedTokens")),
  };
}

function parseUsage(fields: Fields): UsageRecord {
  return {
    ...parseCall(fields),
    target: fields.optional("target", () => fields.text("target")),
    outputTokens: fields.number("outputTokens"),
    cachedInputTokens: fields.number("cachedInputTokens"),
    cacheWriteTokens: fields.optional("cacheWriteTokens", () => fields.number("cacheWriteTokens")),
    usageSource: fields.oneOf("usageSource", usageSources),
    outcome: fields.oneOf("outcome", ["completed", "failed", "abandoned", "interrupted"]),
    status: fields.number("status"),
    code: fields.optional("code", () => fields.text("code")),
    attempts: fields.number("attempts"),
    firstEventMs: fields.optional("firstEventMs", () => fields.number("firstEventMs")),
    durationMs: fields.number("durationMs"),
    // An unreadable one is dropped: it only explains the row.
    routing: fields.optional("routing", () => readRouting(fields.value("routing"))),
    mayBeBilledTwice: fields.optional("mayBeBilledTwice", () => fields.flag("mayBeBilledTwice")),
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Reads fields of an unknown object; throws when a field has the wrong type. */
class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    if (!isObject(value)) throw new UnreadableField();
    // Building a Map of the entries would take most of the time that a record needs.
    this.#fields = value;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  value(name: string): unknown {
    return this.#fields[name];
  }

  inner(name: string): Fields {
    return new Fields(this.value(name));
  }

  text(name: string): string {
    const value = this.#fields[name];
    if (typeof value === "string") return value;
    throw new UnreadableField(name);
  }

  number(name: string): number {
    const value = this.#fields[name];
    if (typeof value === "number") return value;
    throw new UnreadableField(name);
  }

  flag(name: string): boolean {
    const value = this.#fields[name];
    if (typeof value === "boolean") return value;
    throw new UnreadableField(name);
  }

  oneOf<Value extends string>(name: string, values: readonly Value[]): Value {
    const text = this.text(name);
    const value = values.find((each) => each === text);
    if (value !== undefined) return value;
    throw new UnreadableField(name);
  }

  optional<Value>(name: string, read: () => Value): Value | undefined {
    return this.has(name) ? read() : undefined;
  }
}
