import { expect, test } from "bun:test";
import fc from "fast-check";
import { SseParser } from "./sse-parser.ts";

const encoder = new TextEncoder();
const bytesOf = (text: string): Uint8Array => encoder.encode(text);

function parseInPieces(bytes: Uint8Array, cuts: readonly number[]): string[] {
  const parser = new SseParser(1_000_000);
  const found: string[] = [];
  let start = 0;
  for (const cut of [...cuts.toSorted((one, other) => one - other), bytes.length]) {
    found.push(...parser.push(bytes.subarray(start, cut)));
    start = cut;
  }
  return [...found, ...parser.end()];
}

const stream =
  ': hello\r\n\r\nevent: x\r\nid: 1\r\ndata: {"a":"é€😀"}\r\n\r\n' +
  "data:no space\n\ndata: first\ndata: second\n\n\n\nretry: 5\ndata\n\ndata: [DONE]\n\n";
const expected = ['{"a":"é€😀"}', "no space", "first\nsecond", "[DONE]"];

test("events are the same at every split point, characters of several bytes included", () => {
  const bytes = bytesOf(stream);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    expect(parseInPieces(bytes, [cut])).toEqual(expected);
  }
});

test("events are the same byte by byte, and for any split", () => {
  const bytes = bytesOf(stream);
  expect(parseInPieces(bytes, Array.from(bytes.keys()))).toEqual(expected);
  const cuts = fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 12 });
  fc.assert(fc.property(cuts, (at) => expect(parseInPieces(bytes, at)).toEqual(expected)));
});

test("reads that are one event, or nearly one, are read as their bytes are one by one", () => {
  const line = fc.constantFrom(
    "data: a",
    "data:b",
    "data:  c",
    "data: ",
    "data",
    ": d",
    "event: error",
    "",
  );
  const end = fc.constantFrom("\n", "\r\n", "\r\r\n");
  const read = fc.array(fc.tuple(line, end), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(read, { maxLength: 5 }), (reads) => {
      const texts = reads.map((lines) => lines.flat().join(""));
      const parser = new SseParser(1_000);
      const found = [...texts.flatMap((text) => parser.push(bytesOf(text))), ...parser.end()];
      const bytes = bytesOf(texts.join(""));
      expect(found).toEqual(parseInPieces(bytes, Array.from(bytes.keys())));
    }),
  );
});

test("an event without its last empty line is found at the end", () => {
  expect(parseInPieces(bytesOf("data: last"), [])).toEqual(["last"]);
  expect(parseInPieces(bytesOf("data: last\n"), [])).toEqual(["last"]);
  expect(parseInPieces(bytesOf(""), [])).toEqual([]);
});

test("an event that exceeds the limit is refused before it is complete", () => {
  const parser = new SseParser(100);
  expect(() => parser.push(bytesOf(`data: ${"x".repeat(200)}`))).toThrow(
    "more than 100 characters",
  );
  const lines = new SseParser(100);
  expect(() => lines.push(bytesOf("data: 0123456789\n".repeat(20)))).toThrow(
    "more than 100 characters",
  );
});
