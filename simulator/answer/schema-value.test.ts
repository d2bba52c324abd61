import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { Random } from "./random.ts";
import { valueForSchema } from "./schema-value.ts";
import { textForPattern } from "./schema-text.ts";

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
    limit("multipleOf", (step) => Math.abs(value / step - Math.round(value / step)) > 1e-9);
  }
  if (typeof value === "string") {
    const size = Array.from(value).length;
    limit("minLength", (bound) => size < bound);
    limit("maxLength", (bound) => size > bound);
    const pattern = schema["pattern"];
    if (typeof pattern === "string" && !new RegExp(pattern, "u").test(value)) fail("pattern");
  }
  if (Array.isArray(value)) {
    limit("minItems", (bound) => value.length < bound);
    limit("maxItems", (bound) => value.length > bound);
    const texts = value.map((item) => JSON.stringify(item));
    if (schema["uniqueItems"] === true && new Set(texts).size < value.length) fail("uniqueItems");
    value.forEach((item, index) => {
      const rule = list("prefixItems")[index] ?? schema["items"] ?? true;
      found.push(...check(rule, item, `${path}[${index}]`));
    });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const record = value as Schema;
    const properties = (schema["properties"] ?? {}) as Schema;
    limit("minProperties", (bound) => Object.keys(record).length < bound);
    limit("maxProperties", (bound) => Object.keys(record).length > bound);
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
    fc
      .constantFrom(0.25, 3, 0.1)
      .map((step) => ({ type: "number", minimum: -2, multipleOf: step })),
    range(["minLength", "maxLength"], 30).map((bounds) => ({ type: "string", ...bounds })),
    fc
      .constantFrom(
        "^[a-z]{2,4}-\\d+$",
        "^(yes|no)\\.$",
        "^\\w+@[a-z]+\\.(com|org)$",
        "^[^a-y]?z\\S$",
      )
      .map((pattern) => ({ type: "string", pattern })),
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
    fc.tuple(fc.integer({ min: 0, max: 3 }), tie("schema")).map(([minProperties, schema]) => ({
      type: "object",
      minProperties,
      additionalProperties: schema,
    })),
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
        { properties: { a: { maximum: 7 }, b: { type: "string" } }, required: ["b"] },
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

  test("has the unique and contained items that the schema asks for", () => {
    const schema: Schema = {
      type: "array",
      uniqueItems: true,
      minItems: 4,
      maxItems: 4,
      items: { type: "integer", minimum: 1, maximum: 6 },
    };
    expect(problems(schema, make(schema), { root: schema, path: "$" })).toEqual([]);
    const containing = make({ type: "array", contains: { const: "needle" } });
    expect(containing).toContain("needle");
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

describe("a text for a pattern", () => {
  test.each([
    "^\\d{3}-\\d{4}$",
    "^(?:\\+\\d{1,3} )?\\(?\\d{3}\\)?$",
    "^[A-Z][a-z]+(?: [A-Z][a-z]+)*$",
    "^#(?:[0-9a-fA-F]{3}){1,2}$",
    "^[^\\s@]+@[^\\s@]+\\.[a-z]{2,}$",
    "^\\p{Lu}\\p{Ll}*$",
    "^(?<year>\\d{4})-(?<month>0[1-9]|1[0-2])$",
    "^[\\]\\-a]$",
  ])("matches %s", (pattern) => {
    for (let seed = 0; seed < 20; seed++) {
      expect(textForPattern(pattern, new Random(seed)) ?? "none").toMatch(new RegExp(pattern, "u"));
    }
  });

  test("is undefined for a pattern that it cannot match", () => {
    expect(textForPattern("(", new Random(1))).toBeUndefined();
    expect(textForPattern("^a(?!.)b$", new Random(1))).toBeUndefined();
  });
});
