import { expect, test } from "bun:test";
import fc from "fast-check";
import { stringify } from "yaml";
import { demoConfigText } from "./demo.ts";
import { formatProblems, parseConfig } from "./load.ts";
import { runsOf } from "../../test/support/requirement.ts";
import { configInputSchema, isSchema, type JsonSchema } from "./schema.ts";

const demo = demoConfigText({
  simulator: {
    endpoint: "http://127.0.0.1:1",
    region: "us-east-1",
    accessKeyId: "ID",
    secretAccessKey: "S",
  },
  dataDir: "./data",
  listenData: "127.0.0.1:0",
  listenAdmin: "127.0.0.1:0",
});

function mustAnswer(text: string): void {
  const result = parseConfig(text, { name: "x", env: { A: "a" } });
  if (result.ok) return;
  expect(result.problems.length).toBeGreaterThan(0);
  for (const problem of result.problems) {
    expect(problem.message).not.toBe("");
    expect(problem.line).toBeGreaterThan(0);
    expect(problem.column).toBeGreaterThan(0);
  }
  expect(formatProblems("x", result.problems).split("\n")).toHaveLength(result.problems.length + 1);
}

test("any text has an answer", () => {
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), mustAnswer));
});

test("any text of YAML's own characters has an answer", () => {
  const unit = fc.constantFrom(..."a1:-{}[],&*!|>'\"%@`#?~ \n\t$\\=<".split(""), "${", "\n  ");
  fc.assert(fc.property(fc.string({ unit, maxLength: 80 }), mustAnswer), { numRuns: runsOf(300) });
});

test("any part of a valid file lost, doubled or replaced has an answer", () => {
  const position = fc.nat({ max: demo.length });
  fc.assert(
    fc.property(position, position, fc.string({ maxLength: 8 }), (from, to, middle) => {
      mustAnswer(demo.slice(0, from) + middle + demo.slice(to));
    }),
    { numRuns: runsOf(150) },
  );
});

test("any tree has an answer, with known keys at any position", () => {
  const keys = [...collectKeys(configInputSchema())];
  const key = fc.oneof(fc.constantFrom(...keys, "__proto__", "toString"), fc.string());
  const leaf = fc.oneof(
    fc.constantFrom("openai", "chat", "*", "30s", "1MiB", "${A}", "${B}", "true"),
    fc.string(),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      leaf,
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
    ),
  }));
  const file = fc.dictionary(
    fc.constantFrom(...Object.keys(configInputSchema().properties ?? {})),
    tree,
  );
  fc.assert(
    fc.property(file, (value) => mustAnswer(stringify(value, { aliasDuplicateObjects: false }))),
    { numRuns: runsOf(300) },
  );
});

function collectKeys(schema: JsonSchema, keys = new Set<string>()): ReadonlySet<string> {
  for (const [key, part] of Object.entries(schema.properties ?? {})) {
    keys.add(key);
    if (isSchema(part)) collectKeys(part, keys);
  }
  for (const part of [schema.additionalProperties, schema.items, ...(schema.oneOf ?? [])]) {
    if (isSchema(part)) collectKeys(part, keys);
  }
  return keys;
}
