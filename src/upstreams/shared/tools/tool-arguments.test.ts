import { expect, test } from "bun:test";
import { inputOf, parseExactly } from "./tool-arguments.ts";

test("arguments are parsed", () => {
  expect(inputOf('{"a":[1,{"b":null}]}')).toEqual({ a: [1, { b: null }] });
});

test("no arguments are an empty object", () => {
  expect(inputOf("")).toEqual({});
  expect(inputOf(" \n")).toEqual({});
});

test("arguments that are not an object are kept as text", () => {
  for (const text of ['{"a":', "[1]", "null", "7", '"x"', "x"]) {
    expect(inputOf(text)).toEqual({ invalid_arguments: text });
  }
});

test("integers wider than a number keep their digits", () => {
  const text = '{"id":12345678901234567890,"list":[-9007199254740993],"half":0.5}';
  expect(JSON.stringify(inputOf(text))).toBe(text);
});

test("arguments nested so deep that writing them could fail are kept as a text", () => {
  for (const depth of [513, 5_000, 200_000]) {
    const text = `${'{"a":'.repeat(depth)}12345678901234567890${"}".repeat(depth)}`;
    expect(inputOf(text)).toEqual({ invalid_arguments: text });
  }
  const allowed = `${'{"a":'.repeat(512)}1${"}".repeat(512)}`;
  expect(JSON.stringify(inputOf(allowed))).toBe(allowed);
});

test("integers beyond the exact range are written unchanged", () => {
  const text = '{"id":-9007199254740993,"list":[12345678901234567890],"small":1}';
  expect(JSON.stringify(parseExactly(text))).toBe(text);
});

test.each(["-9007199254740992", " 12345678901234567890", "[9007199254740993]", "7", "null"])(
  "%s is not an object, with any number of digits",
  (text) => {
    expect(() => parseExactly(text)).toThrow("not a JSON object");
  },
);
