import { expect, test } from "bun:test";
import { chatFamilies, endOfLifeOf, endsOfLife, knownFamilies } from "./facts.ts";

const date = /^20\d\d-\d\d-\d\d$/;

test("every family has a source and the date on which it was read", () => {
  for (const family of chatFamilies) {
    expect(knownFamilies.sourceOf(family)).toMatch(/^https:.*, read 20\d\d-\d\d-\d\d$/);
  }
});

test("every end of life is a date with a source, once for each model", () => {
  for (const { endsOn, source, asOf } of endsOfLife) {
    expect([endsOn, asOf].filter((text) => date.test(text) && Date.parse(text) > 0)).toHaveLength(
      2,
    );
    expect(source).toStartWith("https://");
  }
  expect(new Set(endsOfLife.map(({ model }) => model)).size).toBe(endsOfLife.length);
});

test("an end of life applies to the model, not to others with the same prefix", () => {
  expect(endOfLifeOf("cohere.command-r-v1:0")?.endsOn).toBe("2026-08-19");
  expect(endOfLifeOf("cohere.command-r-v1:01")).toBeUndefined();
  expect(endOfLifeOf("us.anthropic.claude-sonnet-4-6")).toBeUndefined();
});
