import { expect, test } from "bun:test";
import fc from "fast-check";
import { checkSchemas } from "../../simulator/bedrock/check-schema.ts";
import { ModelRegistry } from "../../simulator/bedrock/models.ts";
import { providerSchema } from "../../src/upstreams/shared/answer-format/provider-schema.ts";

const row = new ModelRegistry({ models: {}, region: undefined }).resolve(
  "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
);

const { schema: anySchema } = fc.letrec((tie) => ({
  names: fc.dictionary(fc.constantFrom("a", "minimum", "pattern", "__proto__"), tie("schema")),
  number: fc.record(
    {
      type: fc.constantFrom("number", "integer"),
      minimum: fc.integer(),
      exclusiveMaximum: fc.integer(),
      multipleOf: fc.integer({ min: 1 }),
      description: fc.constantFrom("", "A number"),
    },
    { requiredKeys: ["type"] },
  ),
  text: fc.record(
    {
      type: fc.constantFrom("string", ["string", "null"]),
      minLength: fc.nat(9),
      pattern: fc.constantFrom("^a+$", "(?=a)", "\\bword", "(a)\\1", "a{1,5000}"),
      format: fc.constantFrom("date", "phone"),
      enum: fc.array(fc.oneof(fc.string(), fc.constant({})), { minLength: 1 }),
    },
    { requiredKeys: ["type"] },
  ),
  list: fc.record(
    {
      type: fc.constant("array"),
      items: tie("schema"),
      minItems: fc.nat(3),
      maxItems: fc.nat(3),
      uniqueItems: fc.boolean(),
    },
    { requiredKeys: ["type"] },
  ),
  object: fc.record(
    {
      type: fc.constant("object"),
      properties: tie("names"),
      additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
      minProperties: fc.nat(2),
      not: tie("schema"),
      $defs: fc.record({ d: tie("schema") }),
    },
    { requiredKeys: ["type"] },
  ),
  choice: fc.oneof(
    fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
    fc.record({ allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
    fc.record({ $ref: fc.constantFrom("#", "#/$defs/d", "#/properties/a", "https://x.test/s") }),
  ),
  schema: fc.oneof(
    { depthSize: "small" },
    tie("number"),
    tie("text"),
    tie("list"),
    tie("choice"),
    tie("object"),
  ),
}));

test("the provider takes each schema that an answer is said to be held to", () => {
  let taken = 0;
  fc.assert(
    fc.property(anySchema, (schema) => {
      const original = structuredClone(schema);
      const held = providerSchema({ type: "object", properties: { a: schema } });
      expect(schema).toEqual(original);
      if (held === undefined) return;
      taken += 1;
      const jsonSchema = { schema: JSON.stringify(held) };
      checkSchemas({ outputConfig: { textFormat: { structure: { jsonSchema } } } }, row);
    }),
    { numRuns: 2_000, seed: 13 },
  );
  expect(taken).toBeGreaterThan(200);
});
