import { expect, test } from "bun:test";
import { JsonBody } from "./json-body.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function take(...pieces: readonly string[]): { taken: readonly boolean[]; text?: string } {
  const body = new JsonBody();
  const taken = pieces.map((piece) => body.take(bytesOf(piece)));
  return { taken, ...(body.text !== undefined && { text: body.text }) };
}

test("a body that begins as a JSON object is taken, for any split", () => {
  expect(take('{"a":', "1}")).toEqual({ taken: [true, true], text: '{"a":1}' });
  expect(take("", " \r\n\t", '\n{"é":', "1}")).toEqual({
    taken: [false, false, true, true],
    text: '\n{"é":1}',
  });
});

test("a stream is not taken, also when JSON comes later", () => {
  expect(take("data: {}", "{}")).toEqual({ taken: [false, false] });
  expect(take(": comment\n", "{")).toEqual({ taken: [false, false] });
  expect(take("\u0000\u0000\u0000\u0010{")).toEqual({ taken: [false] });
});

test("a long body is taken, but kept only up to its bound", () => {
  const body = new JsonBody();
  const piece = bytesOf(`{${"x".repeat(10_000)}`);
  for (let count = 0; count < 1_000; count += 1) expect(body.take(piece)).toBe(true);
  expect(body.text?.length).toBe(64 * 1024);
});
