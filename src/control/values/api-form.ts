import type { z } from "zod";
import { type CamelCase, camelCase } from "../../domain/json-object.ts";
import type { AuditFields } from "../../store/audit.ts";

/**
 * The type of an entity as the API writes it: names in snake case, times (`..._at`) as ISO 8601 in
 * UTC, durations (`..._ms`) in tenths of a millisecond, null for undefined.
 */
export type ApiForm<Value> = Value extends undefined
  ? null
  : Value extends readonly (infer Item)[]
    ? ApiForm<Item>[]
    : Value extends object
      ? ApiFields<Value>
      : Value;

type ApiFields<Entity> = {
  -readonly [Name in keyof Entity & string as SnakeCase<Name>]-?: Name extends `${string}At` | "at"
    ? TimeText<Entity[Name]>
    : ApiForm<Entity[Name]>;
};

type TimeText<Time> = Time extends number ? string : null;

type SnakeCase<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Text;

/**
 * Builds a view: takes each field that the schema names from `more`, or else from the entity. Other
 * fields of the entity, such as a digest, are never copied.
 */
export function viewAs<
  Schema extends z.ZodObject,
  Entity extends object,
  More extends object = Record<never, never>,
>(
  schema: Schema,
  entity: Entity,
  more?: More,
): Pick<
  Omit<ApiFields<Entity>, keyof More>,
  keyof Omit<ApiFields<Entity>, keyof More> & keyof Schema["shape"]
> &
  More;
export function viewAs(schema: z.ZodObject, entity: object, more: object = {}): unknown {
  return { ...pickFields(Object.keys(schema.shape), entity), ...more };
}

/** Copies the fields of these names, which are in snake case. */
export function pickFields(names: readonly string[], entity: object): AuditFields;
export function pickFields(names: readonly string[], entity: object): unknown {
  const values = new Map<string, unknown>(Object.entries(entity));
  return Object.fromEntries(
    names.map((name) => [name, apiValue(name, values.get(camelCase(name)))]),
  );
}

/** Converts a whole value. Only for values without secrets. */
export function apiForm<Value>(value: Value): ApiForm<Value>;
export function apiForm(value: unknown): unknown {
  return apiValue("", value);
}

function apiValue(name: string, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value.map((item) => apiValue("", item));
  if (typeof value === "object") {
    const fields = Object.entries(value).map(
      ([field, inner]) => [snakeCase(field), inner] as const,
    );
    return Object.fromEntries(fields.map(([field, inner]) => [field, apiValue(field, inner)]));
  }
  if (typeof value !== "number") return value;
  if (name === "at" || name.endsWith("_at")) return timeText(value);
  return name.endsWith("_ms") ? roundedMs(value) : value;
}

/** Writes a time as ISO 8601 in UTC; null for what has not happened. */
export function timeText(time: number): string;
export function timeText(time: number | undefined): string | null;
export function timeText(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}

/** Answers have a resolution of a tenth of a millisecond; clocks are finer. */
export function roundedMs(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}

/** The type of a body or a query in an entity's form: camel case, undefined for null. */
export type EntityFields<Request> = {
  -readonly [Name in keyof Request & string as CamelCase<Name>]: EntityForm<Request[Name]>;
};

type EntityForm<Value> = Value extends undefined
  ? never
  : Value extends null
    ? undefined
    : Value extends readonly unknown[]
      ? Value
      : Value extends object
        ? { [Name in keyof Value & string as CamelCase<Name>]: Value[Name] }
        : Value;

/** Converts a body or a query. Undefined fields are left out; null removes a value. */
export function entityForm<Request extends object>(request: Request): EntityFields<Request>;
export function entityForm(request: object): unknown {
  return Object.fromEntries(
    Object.entries(request)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [camelCase(name), entityValue(value)]),
  );
}

function entityValue(value: unknown): unknown {
  if (value === null) return undefined;
  return typeof value === "object" && !Array.isArray(value) ? entityForm(value) : value;
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
