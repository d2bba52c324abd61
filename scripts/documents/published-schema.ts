import type { z } from "zod";
import { configInputSchema, isSchema, type JsonSchema } from "../../src/config/schema.ts";

const placeholderName = "placeholder";

/** The schema for editors: like the input schema, but every value may be a `${NAME}`. */
export function publishedSchema(): JsonSchema {
  const { $schema, ...schema } = configInputSchema();
  return {
    ...($schema === undefined ? {} : { $schema }),
    title: "Sluice configuration",
    ...admitPlaceholders(schema),
    $defs: {
      [placeholderName]: {
        type: "string",
        pattern: "\\$\\{",
        description: "Text with `${NAME}` or `${NAME:-text}`, replaced from the environment.",
      },
    },
  };
}

function admitPlaceholders(schema: JsonSchema): JsonSchema {
  if (isConstrainedValue(schema)) {
    const { default: initial, title, description, ...rest } = schema;
    const alternatives = rest.anyOf ?? [rest];
    return {
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(initial === undefined ? {} : { default: initial }),
      anyOf: [...alternatives, { $ref: `#/$defs/${placeholderName}` }],
    };
  }
  const { properties, additionalProperties, items, oneOf } = schema;
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: mapValues(properties) }),
    ...(isSchema(additionalProperties)
      ? { additionalProperties: admitPlaceholders(additionalProperties) }
      : {}),
    ...(isSchema(items) ? { items: admitPlaceholders(items) } : {}),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map(admitPlaceholders) }),
  };
}

function mapValues(properties: Record<string, z.core.JSONSchema._JSONSchema>) {
  return Object.fromEntries(
    Object.entries(properties).map(([key, schema]) => [
      key,
      isSchema(schema) ? admitPlaceholders(schema) : schema,
    ]),
  );
}

/**
 * Whether the schema is a number, a boolean, an enumeration or a pattern: no placeholder matches.
 */
function isConstrainedValue(schema: JsonSchema): boolean {
  if (schema.const !== undefined) return false;
  if (schema.type === "integer" || schema.type === "boolean") return true;
  const isFormed = schema.pattern !== undefined || (schema.minLength ?? 0) > 1;
  return schema.anyOf !== undefined || schema.enum !== undefined || isFormed;
}
