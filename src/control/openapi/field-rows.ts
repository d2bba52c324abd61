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

/** All fields of a schema, each followed by its nested fields. */
export function fieldRows(schema: z.ZodType): readonly FieldRow[] {
  const root = z.toJSONSchema(schema, { io: "input" });
  return rowsOf(root, { definitions: root.$defs ?? {}, prefix: "", depth: 0 });
}

interface Surroundings {
  readonly definitions: Record<string, JsonSchema>;
  readonly prefix: string;
  readonly depth: number;
}

function rowsOf(schema: JsonSchema, around: Surroundings): readonly FieldRow[] {
  const resolved = resolve(schema, around);
  const { properties = {}, required = [] } = resolved;
  return Object.entries(properties).flatMap(([name, property]) => {
    if (typeof property !== "object") return [];
    const path = around.prefix + name;
    const value = resolve(property, around);
    const about = property.description ?? value.description ?? "";
    const isRequired = required.includes(name);
    const row = { name: path, type: typeOf(property, around), isRequired, about };
    return [row, ...rowsInside(property, { ...around, prefix: path })];
  });
}

function rowsInside(schema: JsonSchema, around: Surroundings): readonly FieldRow[] {
  if (around.depth >= maxDepth) return [];
  const value = resolve(schema, around);
  const { items } = value;
  if (isSchema(items)) {
    return rowsOf(items, { ...around, prefix: `${around.prefix}[].`, depth: around.depth + 1 });
  }
  return rowsOf(value, { ...around, prefix: `${around.prefix}.`, depth: around.depth + 1 });
}

/** Follows references; of a nullable type, returns the other one. */
function resolve(schema: JsonSchema, around: Surroundings): JsonSchema {
  const name = schema.$ref?.replace("#/$defs/", "");
  const target = name === undefined ? schema : (around.definitions[name] ?? schema);
  const alternatives = (target.anyOf ?? []).filter((other) => !isNull(other));
  const [only] = alternatives;
  return alternatives.length === 1 && isSchema(only) ? resolve(only, around) : target;
}

function typeOf(schema: JsonSchema, around: Surroundings): string {
  const value = resolve(schema, around);
  const isNullable = (schema.anyOf ?? []).some(isNull);
  return `${nameOf(value, around)}${isNullable ? " or null" : ""}`;
}

function nameOf(schema: JsonSchema, around: Surroundings): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => String(value)).join(" | ");
  if (schema.format === "date-time") return "time";
  if (isSchema(schema.items)) return `list of ${typeOf(schema.items, around)}`;
  if (schema.anyOf !== undefined) {
    return schema.anyOf
      .map((other) => (isSchema(other) ? typeOf(other, around) : "any"))
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
