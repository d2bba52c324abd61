import { describe, expect, test } from "bun:test";
import { failedKeyword } from "./schema-check.ts";

const tree = {
  $ref: "#/$defs/node",
  $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
};

/** A schema, values that match it, and values that do not, each with the failing keyword. */
const cases: readonly (readonly [
  object,
  readonly unknown[],
  readonly (readonly [unknown, string])[],
])[] = [
  [
    { type: "integer" },
    [1, 1.0, -2],
    [
      [1.5, "type"],
      ["1", "type"],
    ],
  ],
  [{ type: ["string", "null"] }, ["a", null], [[1, "type"]]],
  [
    { enum: [1, { a: [1] }] },
    [1, { a: [1] }],
    [
      [2, "enum"],
      [{ a: [1, 2] }, "enum"],
    ],
  ],
  [{ const: { a: 1, b: 2 } }, [{ b: 2, a: 1 }], [[{ a: 1 }, "const"]]],
  [
    { minimum: 1, exclusiveMaximum: 3, multipleOf: 0.1 },
    [1, 1.1, 2.9, "text"],
    [
      [0, "minimum"],
      [3, "exclusiveMaximum"],
      [1.15, "multipleOf"],
    ],
  ],
  [
    { minLength: 2, maxLength: 2 },
    ["ab", "😀😀"],
    [
      ["a", "minLength"],
      ["abc", "maxLength"],
    ],
  ],
  [
    { items: { type: "number" }, minItems: 1, maxItems: 2, uniqueItems: true },
    [[1], [1, 2]],
    [
      [[], "minItems"],
      [[1, 2, 3], "maxItems"],
      [[1, 1], "uniqueItems"],
      [["a"], "type"],
    ],
  ],
  [
    { prefixItems: [{ type: "string" }], items: { type: "number" } },
    [["a", 1], []],
    [
      [[1], "type"],
      [["a", "b"], "type"],
    ],
  ],
  [
    { contains: { const: 1 }, maxContains: 1 },
    [[1, 2]],
    [
      [[2], "contains"],
      [[1, 1], "contains"],
    ],
  ],
  [
    {
      properties: { minimum: { type: "number" } },
      required: ["minimum"],
      additionalProperties: { type: "string" },
    },
    [{ minimum: 1, other: "a" }, "no object"],
    [
      [{}, "required"],
      [{ minimum: "a" }, "type"],
      [{ minimum: 1, other: 2 }, "type"],
    ],
  ],
  [
    { additionalProperties: false, properties: {} },
    [{}],
    [[{ constructor: 1 }, "additionalProperties"]],
  ],
  [
    { propertyNames: { maxLength: 1 }, maxProperties: 1 },
    [{ a: 1 }],
    [[{ ab: 1 }, "propertyNames"]],
  ],
  [
    { dependentRequired: { a: ["b"] } },
    [{ b: 1 }, { a: 1, b: 1 }],
    [[{ a: 1 }, "dependentRequired"]],
  ],
  [{ anyOf: [{ type: "string" }, { minimum: 3 }] }, ["a", 3], [[1, "anyOf"]]],
  [{ oneOf: [{ type: "number" }, { minimum: 3 }] }, [1, "a"], [[4, "oneOf"]]],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [[3, "maximum"]]],
  [{ not: { const: 1 } }, [2], [[1, "not"]]],
  [
    JSON.parse('{"if":{"const":1},"then":false,"else":{"type":"string"}}') as object,
    ["a"],
    [
      [1, "if"],
      [2, "if"],
    ],
  ],
  // Invalid names have no effect.
  [{ required: [{ toString: 1 }], dependentRequired: { a: [{ toString: 1 }] } }, [{ a: 1 }], []],
  [tree, [{}, { next: { next: {} } }], [[{ next: { next: 1 } }, "type"]]],
  [
    { constructor: 1, toString: false, pattern: "(a+)+$" },
    ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"],
    [],
  ],
];

test.each(cases)("%j", (schema, matching, others) => {
  for (const value of matching) expect(failedKeyword(value, { ...schema })).toBeUndefined();
  for (const [value, keyword] of others) expect(failedKeyword(value, { ...schema })).toBe(keyword);
});

describe("a check ends", () => {
  test("where a schema doubles with each of its definitions", () => {
    const $defs: Record<string, object> = { d0: { type: "string" } };
    for (let step = 1; step < 64; step += 1) {
      const $ref = `#/$defs/d${step - 1}`;
      $defs[`d${step}`] = { anyOf: [{ $ref }, { $ref }] };
    }
    expect(failedKeyword(1, { $ref: "#/$defs/d63", $defs })).toBe("more than can be checked");
  });

  test("where a schema refers to itself", () => {
    expect(failedKeyword(1, { $ref: "#" })).toBe("more than can be checked");
  });

  test("where a long text is read again and again", () => {
    const anyOf = Array.from({ length: 100_000 }, () => ({ minLength: 1_000_000 }));
    expect(failedKeyword("a".repeat(500_000), { anyOf })).toBe("more than can be checked");
  });

  test("where a long reference is followed again and again", () => {
    const items = { $ref: `#${"/a".repeat(500_000)}` };
    expect(failedKeyword([1, 2, 3, 4, 5], { items })).toBe("more than can be checked");
  });

  test("where a large value is counted again and again", () => {
    const value = Object.fromEntries(Array.from({ length: 1_000 }, (_, key) => [`k${key}`, 1]));
    const anyOf = Array.from({ length: 10_000 }, () => ({ minProperties: 2_000 }));
    expect(failedKeyword(value, { anyOf })).toBe("more than can be checked");
  });
});
