import { expect, test } from "bun:test";
import { providerSchema } from "./provider-schema.ts";

const text = { type: "string" };
const closed = { type: "object", properties: { a: text }, additionalProperties: false };

/** Schemas whose meaning would change with the part that the provider enforces. */
const inexpressible: readonly (readonly [string, object])[] = [
  ["free names beside known ones", { ...closed, additionalProperties: text }],
  ["any further names", { ...closed, additionalProperties: true }],
  ["names by an expression", { ...closed, patternProperties: { "^x": text } }],
  ["an object of any names", { type: "object" }],
  ["a value of any kind", { ...closed, properties: { a: { description: "Anything" } } }],
  ["a part that allows everything", { ...closed, properties: { a: true } }],
  ["several schemas in allOf", { ...closed, properties: { a: { allOf: [text, text] } } }],
  ["allOf that contradicts", { ...closed, properties: { a: { ...text, allOf: [closed] } } }],
  ["a choice of objects", { ...closed, properties: { a: { enum: [{ b: 1 }] } } }],
  ["a reference elsewhere", { ...closed, properties: { a: { $ref: "https://x.test/a" } } }],
  ["itself", { ...closed, properties: { a: { $ref: "#" } } }],
  ["two lists of alternatives", { anyOf: [text], oneOf: [text] }],
];

test.each(inexpressible)("a schema with %s cannot be expressed", (_what, schema) => {
  expect(providerSchema({ ...schema })).toBeUndefined();
});

test("a repeated definition is no recursion", () => {
  const $ref = "#/$defs/t";
  const schema = { ...closed, properties: { a: { $ref }, b: { $ref } }, $defs: { t: text } };
  expect(providerSchema(schema)).toEqual(schema);
});

test("names of properties are no keywords, and data is no schema", () => {
  const properties = {
    minimum: text,
    pattern: text,
    not: { type: "integer", default: 3 },
    properties: { type: "array", items: text, examples: [{ minimum: 1 }] },
  };
  const schema = { ...closed, properties, required: ["minimum"] };
  expect(providerSchema(schema)).toEqual(schema);
});

test("keywords with invalid values are described as they are", () => {
  const value = { toString: 1 };
  expect(providerSchema({ ...text, pattern: value, format: value })).toEqual({
    ...text,
    description:
      'Fits the JSON schema {"pattern":{"toString":1}}; fits the JSON schema {"format":{"toString":1}}',
  });
});

test("definitions may be as many as a body can hold", () => {
  const count = 100_000;
  const $defs: Record<string, object> = { [`d${count}`]: text };
  for (let step = 0; step < count; step += 1) $defs[`d${step}`] = { $ref: `#/$defs/d${step + 1}` };
  const schema = { ...closed, properties: { a: { $ref: "#/$defs/d0" } }, $defs };
  expect(providerSchema(schema)).toEqual(schema);
  $defs[`d${count}`] = { $ref: "#/$defs/d0" };
  expect(providerSchema(schema)).toBeUndefined();
});
