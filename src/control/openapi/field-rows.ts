import { z } from "zod";

/** A field of a request or an answer, as a line of the reference page. */
export interface FieldRow {
  /** Path of the field: `secrets[].hint`. */
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly about: string;
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

const maxDepth = 4;

/** All fields of a schema, those inside others behind them. */
export function fieldRows(schema: z.ZodType): readonly FieldRow[] {
  const root = z.toJSONSchema(schema, { io: "input" });
  return rowsOf(root, { definitions: root.$defs ?? {}, prefix: "", depth: 0 });
}

interface Place {
  readonly definitions: Record<string, JsonSchema>;
  readonly prefix: string;
  readonly depth: number;
}

function rowsOf(schema: JsonSchema, place: Place): readonly FieldRow[] {
  const resolved = resolve(schema, place);
  const { properties = {}, required = [] } = resolved;
  return Object.entries(properties).flatMap(([name, property]) => {
    if (typeof property !== "object") return [];
    const path = place.prefix + name;
    const value = resolve(property, place);
    const about = property.description ?? value.description ?? "";
    const isRequired = required.includes(name);
    const row = { name: path, type: typeOf(property, place), isRequired, about };
    return [row, ...rowsInside(property, { ...place, prefix: path })];
  });
}

function rowsInside(schema: JsonSchema, place: Place): readonly FieldRow[] {
  if (place.depth >= maxDepth) return [];
  const value = resolve(schema, place);
  const { items } = value;
  if (isSchema(items)) {
    return rowsOf(items, { ...place, prefix: `${place.prefix}[].`, depth: place.depth + 1 });
  }
  return rowsOf(value, { ...place, prefix: `${place.prefix}.`, depth: place.depth + 1 });
}

/** Through references, and to what is not null of what may be null. */
function resolve(schema: JsonSchema, place: Place): JsonSchema {
  const name = schema.$ref?.replace("#/$defs/", "");
  const target = name === undefined ? schema : (place.definitions[name] ?? schema);
  const alternatives = (target.anyOf ?? []).filter((other) => !isNull(other));
  const [only] = alternatives;
  return alternatives.length === 1 && isSchema(only) ? resolve(only, place) : target;
}

function typeOf(schema: JsonSchema, place: Place): string {
  const value = resolve(schema, place);
  const isNullable = (schema.anyOf ?? []).some(isNull);
  return `${nameOf(value, place)}${isNullable ? " or null" : ""}`;
}

function nameOf(schema: JsonSchema, place: Place): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => String(value)).join(" | ");
  if (schema.format === "date-time") return "time";
  if (isSchema(schema.items)) return `list of ${typeOf(schema.items, place)}`;
  if (schema.anyOf !== undefined) {
    return schema.anyOf
      .map((other) => (isSchema(other) ? typeOf(other, place) : "any"))
      .join(" | ");
  }
  return typeof schema.type === "string" ? schema.type : "any";
}

function isNull(schema: z.core.JSONSchema._JSONSchema): boolean {
  return typeof schema === "object" && schema.type === "null";
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
