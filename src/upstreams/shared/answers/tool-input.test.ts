import { expect, test } from "bun:test";
import fc from "fast-check";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { FreeTextInput } from "./tool-input.ts";

function read(pieces: readonly string[]): string[] {
  const said: string[] = [];
  const input = new FreeTextInput((text) => said.push(text));
  for (const piece of pieces) input.push(piece);
  input.end();
  return said;
}

test("the text is emitted unescaped while the JSON arrives", () => {
  const pieces = ["{", '"input"', ': "one', "\\", "ntwo \\u00", 'e9 \\"', ' 👋"', "}"];
  expect(read(pieces)).toEqual(["one", "\ntwo ", 'é "', " 👋"]);
});

test("any text is restored for any form and split of its JSON", () => {
  const text = fc.string({ unit: "binary", maxLength: 60 });
  const asciiOnly = (json: string): string =>
    json.replaceAll(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  fc.assert(
    fc.property(text, fc.array(fc.nat(200)), fc.boolean(), (value, offsets, isAscii) => {
      const plain = JSON.stringify({ input: value });
      const json = isAscii ? asciiOnly(plain) : plain;
      const cuts = [0, ...offsets.filter((at) => at < json.length), json.length];
      const sorted = cuts.toSorted((one, other) => one - other);
      const pieces = sorted.slice(1).map((end, at) => json.slice(sorted[at], end));
      expect(read(pieces).join("")).toBe(value);
    }),
    { numRuns: 500 },
  );
});

test("a text that was cut short stays cut", () => {
  expect(read(['{"input":"abc']).join("")).toBe("abc");
  expect(read(['{"input":"abc\\']).join("")).toBe("abc");
  expect(read(['{"input":"abc\\u00']).join("")).toBe("abc");
});

test("an empty text, and no input at all, are nothing", () => {
  expect(read(['{"input":""}'])).toEqual([]);
  expect(read([])).toEqual([]);
  expect(read([""])).toEqual([]);
});

test("unescaped line breaks belong to the text", () => {
  expect(read(['{"input":"one\ntwo\\nthree\t"}']).join("")).toBe("one\ntwo\nthree\t");
});

test("text after the field is left out", () => {
  expect(read(['{"input":"abc","other":', '"input"}']).join("")).toBe("abc");
});

test("JSON of another form is read as a whole at its end", () => {
  expect(read(['{"note":1,', '"input":"abc"}'])).toEqual(["abc"]);
  expect(read(['{"text":', '"abc"}'])).toEqual(['{"text":"abc"}']);
  expect(read(['{"input":', "7}"])).toEqual(['{"input":7}']);
  expect(read(["plain words"])).toEqual(["plain words"]);
  const long = `{"note":"${"x".repeat(1_000)}","input":"abc"}`;
  expect(read(long.split(""))).toEqual(["abc"]);
});

test("JSON of another form is collected up to a limit", () => {
  const reader = new FreeTextInput(() => undefined);
  const piece = "x".repeat(1024 * 1024);
  expect(() => {
    for (let count = 0; count < 5; count += 1) reader.push(piece);
  }).toThrow(UpstreamFailure);
});
