import { expect, test } from "bun:test";
import { parseExactly } from "./exact-json.ts";

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
