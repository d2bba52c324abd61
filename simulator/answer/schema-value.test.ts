import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { Random } from "./random.ts";
import { valueForSchema } from "./schema-value.ts";

type Schema = Record<string, unknown>;

const hints = { userText: "Book a table in Lisbon", names: ["Lisbon"], words: ["book", "table"] };

function make(schema: Schema, seed = 1): unknown {
  // Callers get the value as JSON text.
  const text = JSON.stringify(valueForSchema(schema, { random: new Random(seed), hints }));
  return JSON.parse(text) as unknown;
}

interface Place {
  readonly root: Schema;
  readonly path: string;
}

/** A validator that is independent of the writer. */
function problems(schema: Schema | boolean, value: unknown, place: Place): string[] {
  const { root, path } = place;
  if (schema === true) return [];
  if (schema === false) return [`${path}: nothing is allowed`];
  const found: string[] = [];
  const fail = (rule: string): void => void found.push(`${path}: ${rule} ${JSON.stringify(value)}`);
  const check = (part: unknown, at: unknown, where = path): string[] =>
    problems(part as Schema, at, { root, path: where });
  const passes = (part: unknown): boolean => check(part, value).length === 0;
  if (typeof schema["$ref"] === "string") {
    const target = schema["$ref"].split("/").slice(1);
    found.push(
      ...check(
        target.reduce<unknown>((at, key) => (at as Schema)[key], root),
        value,
      ),
    );
  }
  if ("const" in schema && !Bun.deepEquals(schema["const"], value)) fail("const");
  const list = (keyword: string): unknown[] => (schema[keyword] ?? []) as unknown[];
  if ("enum" in schema && !list("enum").some((item) => Bun.deepEquals(item, value))) fail("enum");
  if ("type" in schema && ![schema["type"]].flat().some((type) => hasType(type, value))) {
    fail("type");
  }
  for (const part of list("allOf")) found.push(...check(part, value));
  if ("anyOf" in schema && !list("anyOf").some(passes)) fail("anyOf");
  if ("oneOf" in schema && list("oneOf").filter(passes).length !== 1) fail("oneOf");
  const limit = (keyword: string, isBroken: (bound: number) => boolean): void => {
    if (keyword in schema && isBroken(schema[keyword] as number)) fail(keyword);
  };
  if (typeof value === "number") {
    limit("minimum", (bound) => value < bound);
    limit("maximum", (bound) => value > bound);
    limit("exclusiveMinimum", (bound) => value <= bound);
    limit("exclusiveMaximum", (bound) => value >= bound);
  }
  if (typeof value === "string") {
    const size = Array.from(value).length;
    limit("minLength", (bound) => size < bound);
    limit("maxLength", (bound) => size > bound);
  }
  if (Array.isArray(value)) {
    limit("minItems", (bound) => value.length < bound);
    limit("maxItems", (bound) => value.length > bound);
    value.forEach((item, index) => {
      const rule = schema["items"] ?? true;
      found.push(...check(rule, item, `${path}[${index}]`));
    });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const record = value as Schema;
    const properties = (schema["properties"] ?? {}) as Schema;
    for (const name of list("required")) {
      if (!Object.hasOwn(record, name as string)) fail(`${name as string} missing`);
    }
    for (const [name, item] of Object.entries(record)) {
      const rule = Object.hasOwn(properties, name)
        ? properties[name]
        : schema["additionalProperties"];
      found.push(...check(rule ?? true, item, `${path}.${name}`));
    }
  }
  return found;
}

function hasType(type: unknown, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }
  return typeof value === type;
}

const range = (keywords: readonly [string, string], highest: number) =>
  fc
    .tuple(fc.integer({ min: 0, max: highest }), fc.integer({ min: 0, max: highest }))
    .map(([one, other]) => ({
      [keywords[0]]: Math.min(one, other),
      [keywords[1]]: Math.max(one, other),
    }));

/** JSON has no negative zero. */
const jsonValue = fc
  .jsonValue({ maxDepth: 1 })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** Satisfiable schemas with every keyword that tools and structured output use. */
const { schema: anySchema } = fc.letrec<{ schema: Schema; leaf: Schema }>((tie) => ({
  leaf: fc.oneof(
    fc.constant({ type: "boolean" }),
    fc.constant({ type: "null" }),
    fc.constant({}),
    fc.record({ const: jsonValue }),
    fc.record({ enum: fc.array(jsonValue, { minLength: 1, maxLength: 3 }) }),
    range(["minimum", "maximum"], 50).map((bounds) => ({ type: "integer", ...bounds })),
    fc.integer({ min: -9, max: 9 }).map((bound) => ({
      type: "number",
      exclusiveMinimum: bound,
      exclusiveMaximum: bound + 0.5,
    })),
    range(["minLength", "maxLength"], 30).map((bounds) => ({ type: "string", ...bounds })),
    fc.constantFrom(["string", "null"], ["integer", "string"]).map((type) => ({ type })),
  ),
  schema: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    tie("leaf"),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom("city", "date", "n", "__proto__"), tie("schema")),
        fc.boolean(),
      )
      .map(([properties, isStrict]) => ({
        type: "object",
        properties,
        required: Object.keys(properties).slice(isStrict ? 0 : 1),
        additionalProperties: false,
      })),
    fc
      .tuple(tie("schema"), range(["minItems", "maxItems"], 5))
      .map(([items, bounds]) => ({ type: "array", items, ...bounds })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    tie("schema").map((schema) => ({ oneOf: [schema, false].slice(0, 1) })),
    tie("schema").map((schema) => ({ allOf: [schema] })),
  ),
}));

describe("a value for a schema", () => {
  test("is valid for any schema", () => {
    fc.assert(
      fc.property(anySchema, fc.integer(), (schema, seed) => {
        expect(problems(schema, make(schema, seed), { root: schema, path: "$" })).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });

  test("follows references and ends recursive ones", () => {
    const schema: Schema = {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          type: "object",
          properties: {
            name: { type: "string" },
            children: { type: "array", items: { $ref: "#/$defs/node" } },
            next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
          },
          required: ["name", "children", "next"],
          additionalProperties: false,
        },
      },
    };
    for (let seed = 0; seed < 50; seed++) {
      expect(problems(schema, make(schema, seed), { root: schema, path: "$" })).toEqual([]);
    }
  });

  test("satisfies all parts of allOf and exactly one of oneOf", () => {
    const schema: Schema = {
      allOf: [
        { type: "object", properties: { a: { type: "integer", minimum: 5 } }, required: ["a"] },
        { properties: { b: { type: "string" } }, required: ["b"] },
      ],
      oneOf: [
        { properties: { kind: { const: "x" } }, required: ["kind"] },
        { properties: { kind: { const: "y" } }, required: ["kind"] },
      ],
    };
    for (let seed = 0; seed < 50; seed++) {
      expect(problems(schema, make(schema, seed), { root: schema, path: "$" })).toEqual([]);
    }
  });

  test("has strings of the schema's format", () => {
    const one = (format: string): string => String(make({ type: "string", format }));
    expect(one("uuid")).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.isNaN(Date.parse(one("date-time")))).toBe(false);
    expect(one("email")).toMatch(/^\S+@example\.com$/);
    expect(URL.canParse(one("uri"))).toBe(true);
  });

  test("is repeatable", () => {
    const schema: Schema = { type: "object", properties: { a: {}, b: { type: "number" } } };
    expect(make(schema, 5)).toEqual(make(schema, 5));
  });
});
