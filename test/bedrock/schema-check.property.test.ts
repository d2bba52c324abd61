import { expect, test } from "bun:test";
import { Validator } from "@cfworker/json-schema";
import fc from "fast-check";
import { failedKeyword } from "../../src/upstreams/bedrock/answer-format/schema-check.ts";

const name = fc.constantFrom("a", "b", "minimum");
const small = fc.integer({ min: -1, max: 3 });
const size = fc.nat(3);

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, "", "a", "😀b", 0.5),
    small,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));

const branches = ["if", "then", "else"];
const type = fc.constantFrom("object", "array", "string", "integer", "number", "boolean", "null");

const { schema } = fc.letrec((tie) => ({
  many: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
  named: fc.dictionary(name, tie("schema"), { maxKeys: 2 }),
  schema: fc.oneof(
    { depthSize: "small" },
    fc.record({ type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1 })) }),
    fc.record(
      { minimum: small, maximum: small, exclusiveMinimum: small, multipleOf: fc.constant(2) },
      { requiredKeys: [] },
    ),
    fc.record({ minLength: size, maxLength: size }, { requiredKeys: [] }),
    fc.record({ enum: fc.array(value, { minLength: 1, maxLength: 3 }) }),
    fc.record({ const: value }),
    fc.boolean(),
    fc.record(
      {
        items: tie("schema"),
        prefixItems: tie("many"),
        minItems: size,
        maxItems: size,
        uniqueItems: fc.boolean(),
        contains: tie("schema"),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      {
        properties: tie("named"),
        required: fc.uniqueArray(name),
        additionalProperties: tie("schema"),
        propertyNames: tie("schema"),
        minProperties: size,
        maxProperties: size,
        dependentRequired: fc.dictionary(name, fc.uniqueArray(name), { maxKeys: 1 }),
        dependentSchemas: tie("named"),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      { anyOf: tie("many"), oneOf: tie("many"), allOf: tie("many"), not: tie("schema") },
      { requiredKeys: [] },
    ),
    fc
      .tuple(tie("schema"), tie("schema"), tie("schema"))
      .map((parts) => Object.fromEntries(parts.map((part, at) => [branches[at] ?? "", part]))),
    fc.constant({ $ref: "#/$defs/d" }),
  ),
}));

test("an answer matches a schema where another validator says so", () => {
  let matching = 0;
  fc.assert(
    fc.property(schema, schema, value, (part, definition, candidate) => {
      // A definition that refers to itself without end is for neither to judge.
      if (JSON.stringify(definition).includes("$ref")) return;
      const whole = { properties: { a: part }, $defs: { d: definition }, allOf: [part] };
      const { valid } = new Validator(whole as object, "2020-12").validate(candidate);
      if (valid) matching += 1;
      expect(failedKeyword(candidate, whole) === undefined).toBe(valid);
    }),
    { numRuns: 5_000, seed: 13 },
  );
  expect(matching).toBeGreaterThan(500);
});
