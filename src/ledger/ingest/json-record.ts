import { readRouting } from "../../domain/usage/kept-routing.ts";
import { usageSources, type OpenedCall, type UsageRecord } from "../../domain/usage/usage.ts";
import type { SpoolRecord } from "../spool/spool-record.ts";

/** Reads a record of earlier versions. Undefined for text that none of them writes. */
export function readJsonRecord(text: string): SpoolRecord | undefined {
  try {
    return parseRecord(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnreadableField) return undefined;
    throw error;
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
    ...(fields.has("reservedTokens") && { reservedTokens: fields.number("reservedTokens") }),
  };
}

function parseUsage(fields: Fields): UsageRecord {
  return {
    ...parseCall(fields),
    target: fields.optional("target", () => fields.text("target")),
    outputTokens: fields.number("outputTokens"),
    cachedInputTokens: fields.number("cachedInputTokens"),
    usageSource: fields.oneOf("usageSource", usageSources),
    outcome: fields.oneOf("outcome", ["completed", "failed", "abandoned", "interrupted"]),
    status: fields.number("status"),
    code: fields.optional("code", () => fields.text("code")),
    attempts: fields.number("attempts"),
    firstEventMs: fields.optional("firstEventMs", () => fields.number("firstEventMs")),
    durationMs: fields.number("durationMs"),
    ...(fields.has("routing") && { routing: readRouting(fields.value("routing")) }),
    ...(fields.has("cacheWriteTokens") && { cacheWriteTokens: fields.number("cacheWriteTokens") }),
    ...(fields.has("mayBeBilledTwice") && { mayBeBilledTwice: fields.flag("mayBeBilledTwice") }),
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
