import { expect, test } from "bun:test";
import { isSameValue } from "./same-value.ts";
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
