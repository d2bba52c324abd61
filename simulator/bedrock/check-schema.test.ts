import { expect, test } from "bun:test";
import type { JsonRecord } from "../json.ts";
import { BedrockError } from "./errors.ts";
import { checkSchemas } from "./check-schema.ts";
import { ModelRegistry } from "./models.ts";

const row = new ModelRegistry({ models: {}, region: undefined }).resolve(
  "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
);
const prefix = "The model returned the following errors: output_config.format.schema: ";

function messageOf(body: JsonRecord): string {
  try {
    checkSchemas(body, row);
    return "accepted";
  } catch (error) {
    if (error instanceof BedrockError) return error.message;
    throw error;
  }
}

function held(schema: object | string): JsonRecord {
  const text = typeof schema === "string" ? schema : JSON.stringify(schema);
  return { outputConfig: { textFormat: { structure: { jsonSchema: { schema: text } } } } };
}

const closed = (properties: object, more: object = {}) => ({
  type: "object",
  properties,
  additionalProperties: false,
  ...more,
});

const cases: readonly (readonly [string, object, string])[] = [
  ["nothing unusual", closed({ a: { type: "string", format: "date" } }), "accepted"],
  ["a property called like a keyword", closed({ minimum: { type: "integer" } }), "accepted"],
  ["a list of one or more", closed({ a: { type: "array", minItems: 1 } }), "accepted"],
  [
    "two bounds of a number",
    closed({ a: { type: "integer", minimum: 1, maximum: 5 } }),
    `${prefix}For 'integer' type, properties maximum, minimum are not supported`,
  ],
  [
    "one bound",
    closed({ a: { anyOf: [{ type: "number", minimum: 1 }] } }),
    `${prefix}For 'number' type, property 'minimum' is not supported`,
  ],
  [
    "a longer list",
    closed({ a: { type: "array", items: { type: "string" }, minItems: 8 } }),
    `${prefix}For 'array' type, 'minItems' values other than 0 or 1 are not supported`,
  ],
  [
    "an open object",
    { type: "object", properties: {} },
    `${prefix}For 'object' type, 'additionalProperties' must be explicitly set to false`,
  ],
  [
    "a map",
    closed({ a: { type: "object", additionalProperties: { type: "string" } } }),
    `${prefix}For 'object' type, 'additionalProperties' must be explicitly set to false`,
  ],
  [
    "a tree",
    closed({ a: { $ref: "#/$defs/n" } }, { $defs: { n: closed({ b: { $ref: "#/$defs/n" } }) } }),
    `${prefix}Too many recursive definitions in schema`,
  ],
  [
    "a lookahead",
    closed({ a: { type: "string", pattern: "^(?=a)" } }),
    `${prefix}Invalid regex in pattern field`,
  ],
  [
    "an unknown format",
    closed({ a: { type: "string", format: "phone" } }),
    `${prefix}For 'string' type, format 'phone' is not supported`,
  ],
  [
    "a reference within allOf",
    closed({ a: { allOf: [{ $ref: "#/$defs/n" }] } }, { $defs: { n: { type: "string" } } }),
    `${prefix}allOf with $ref is not supported`,
  ],
];

test.each(cases)("a schema with %s is refused", (_what, schema, message) => {
  expect(messageOf(held(schema))).toBe(message);
});

test("strict tools have the same rules, other tools none", () => {
  const tool = (strict: boolean) => ({
    toolConfig: {
      tools: [{ toolSpec: { name: "a", strict, inputSchema: { json: { type: "object" } } } }],
    },
  });
  expect(messageOf(tool(false))).toBe("accepted");
  expect(messageOf(tool(true))).toContain("tools.0.custom: For 'object' type");
});

test("a schema must be the text of a JSON object", () => {
  expect(messageOf(held("{"))).toContain("not a JSON object");
  expect(messageOf(held("[]"))).toContain("not a JSON object");
});
