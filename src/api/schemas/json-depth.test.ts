import { expect, test } from "bun:test";
import fc from "fast-check";
import { exceedsDepth } from "./json-depth.ts";

function exceeds(text: string, limit: number): boolean {
  return exceedsDepth(new TextEncoder().encode(text), limit);
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test("nesting at the limit passes, one deeper does not", () => {
  for (const [open, close] of [["[", "]"] as const, ['{"a":', "}"] as const]) {
    expect(exceeds(`${open.repeat(64)}1${close.repeat(64)}`, 64)).toBeFalse();
    expect(exceeds(`${open.repeat(65)}1${close.repeat(65)}`, 64)).toBeTrue();
  }
});

test("brackets beside each other do not add up", () => {
  expect(exceeds(`[${"[],".repeat(1000)}{}]`, 2)).toBeFalse();
});

test("brackets in strings do not count, wherever the string ends", () => {
  for (let length = 0; length < 100; length += 1) {
    const padding = "x".repeat(length);
    const siblings = "[],".repeat(9);
    expect(exceeds(`[${siblings}"${padding}[[[["]`, 3)).toBeFalse();
    expect(exceeds(`[${siblings}"${padding}\\"[[[["]`, 3)).toBeFalse();
    expect(exceeds(`[${siblings}"${padding}\\\\",[[[1]]]]`, 3)).toBeTrue();
    expect(exceeds(`[${siblings}"${padding}\\\\\\"[[[[\\\\",[[1]]]`, 3)).toBeFalse();
  }
});

test("a text cut short is measured as far as it goes", () => {
  expect(exceeds("[".repeat(1_000_000), 64)).toBeTrue();
  expect(exceeds(`[[[["[[[[[[[[`, 4)).toBeFalse();
  expect(exceeds(`[[[["${"[".repeat(200)}\\`, 4)).toBeFalse();
  expect(exceeds("", 0)).toBeFalse();
  expect(exceeds("[", 0)).toBeTrue();
});

test("the depth is that of the parsed value, for any JSON", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat({ max: 8 }), (value, limit) => {
      expect(exceeds(JSON.stringify(value), limit)).toBe(depthOf(value) > limit);
    }),
    { numRuns: 3000 },
  );
});

test("strings of quotes, backslashes and brackets never mislead", () => {
  const text = fc.string({
    unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", "é", "x".repeat(40)),
    maxLength: 60,
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(text, fc.array(text, { maxLength: 2 }))), (value) => {
      const json = JSON.stringify(value);
      expect(exceeds(json, depthOf(value))).toBeFalse();
      expect(exceeds(json, depthOf(value) - 1)).toBeTrue();
    }),
    { numRuns: 2000 },
  );
});
