import fc from "fast-check";
import { expect, test } from "bun:test";
import { isSameValue, readJsonText, writeJsonText } from "./json-object.ts";
import { Secret } from "./keys/secret.ts";

const settings = (secret: string, more: object = {}) => ({
  region: "us-east-1",
  credentials: { source: "static", secret: new Secret(secret) },
  models: new Map([["alias", new Map([["id", { families: ["a", "b"], limit: undefined }]])]]),
  ...more,
});

test("equal data is the same", () => {
  expect(isSameValue(settings("s"), settings("s"))).toBe(true);
});

test.each([
  ["another secret", settings("t")],
  ["a field more", settings("s", { fips: true })],
  ["another field", settings("s", { region: "eu-west-1" })],
  ["an entry less", settings("s", { models: new Map() })],
  ["another list", settings("s", { models: ["alias"] })],
  ["undefined instead of absent", settings("s", { endpoint: undefined })],
  ["nothing at all", null],
])("%s is a difference", (_, other) => {
  expect(isSameValue(settings("s"), other)).toBe(false);
});

const awkward = fc.constantFrom('"', "\\", "\n", "\u0000", "\u2028", "\ud800", "\udfff", "é", "👋🏽");
const texts = fc.array(fc.oneof(awkward, fc.string({ unit: "binary" })), { maxLength: 12 });

test("texts are written as the runtime writes them, and read back", () => {
  fc.assert(
    fc.property(texts, (parts) => {
      const text = parts.join("");
      expect(writeJsonText(text)).toBe(JSON.stringify(text));
      expect(readJsonText(JSON.stringify(text))).toBe(text);
    }),
    { numRuns: 2_000 },
  );
  const long = "a word ".repeat(1_000);
  expect(readJsonText(writeJsonText(long))).toBe(long);
});

test("JSON is read exactly when it is one valid string", () => {
  const pieces = fc.constantFrom(
    '"',
    "\\",
    "a",
    "\n",
    "\t",
    "\\u00e9",
    "\\n",
    "1",
    "null",
    " ",
    ",",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 6 }), (parts) => {
      const json = parts.join("");
      expect([json, readJsonText(json)]).toEqual([json, stringIn(json)]);
    }),
    { numRuns: 5_000 },
  );
});

function stringIn(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
