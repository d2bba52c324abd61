import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodeEmbeddings } from "./embeddings.ts";
import { unpackVectors } from "./packed-vectors.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const space = fc.constantFrom("", " ", "\n", " \r\n\t");
const vector = fc.uint8Array({ minLength: 1, maxLength: 60 }).map((data) => data.toBase64());
/** Texts that quote the field that is searched for. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom('"embedding":"AAAA"', '\\"embedding":"', "embedding", '{"embedding":"AAAA"}'),
);

const answer = fc.record({
  vectors: fc.array(vector, { minLength: 1, maxLength: 6 }),
  model: text,
  before: fc.array(text, { maxLength: 3 }),
  tokens: fc.nat(),
  pad: space,
  isReversed: fc.boolean(),
});

test("vectors taken out of an answer are those that a parser finds, whatever texts are beside them", () => {
  fc.assert(
    fc.property(answer, ({ vectors, model, before, tokens, pad, isReversed }) => {
      const data = vectors.map((embedding, index) => ({
        note: before,
        object: "embedding",
        embedding,
        index,
      }));
      const whole = {
        model,
        object: "list",
        data: isReversed ? data.toReversed() : data,
        usage: { prompt_tokens: tokens },
      };
      const json = JSON.stringify(whole).replaceAll('"embedding":', `"embedding"${pad}:${pad}`);
      // Padding may have changed quoted texts, which only the parser sees.
      const result = decodeEmbeddings(bytes(json));
      expect(result.vectors).toEqual(vectors);
      expect(result.usage?.inputTokens).toBe(tokens);
    }),
    { numRuns: 2_000 },
  );
});

test("an answer of plain base64 is not parsed as a whole", () => {
  const data = ["AAAA", "AACAPw=="].map((embedding, index) => ({
    object: "embedding",
    index,
    embedding,
  }));
  const unpacked = unpackVectors(bytes(JSON.stringify({ object: "list", data })));
  expect(unpacked?.vectors).toEqual(["AAAA", "AACAPw=="]);
  expect(JSON.parse(unpacked?.json ?? "")).toEqual({
    object: "list",
    data: [
      { object: "embedding", index: 0, embedding: 0 },
      { object: "embedding", index: 1, embedding: 1 },
    ],
  });
});

test.each([
  ["an escaped slash", String.raw`{"data":[{"embedding":"AA\/A"}]}`, "AA/A"],
  ["broken lines", String.raw`{"data":[{"embedding":"AAAA\r\nAAAA"}]}`, "AAAAAAAA"],
  ["no padding", '{"data":[{"embedding":"AACAPw"}]}', "AACAPw=="],
  ["an escaped name", String.raw`{"data":[{"embeddin\u0067":"AAAA"}]}`, "AAAA"],
])("base64 with %s is read too", (_name, json, expected) => {
  expect(decodeEmbeddings(bytes(json)).vectors).toEqual([expected]);
});

test.each([
  ["text that is not base64", '{"data":[{"embedding":"no, not a vector"}]}'],
  ["text in another alphabet", '{"data":[{"embedding":"AA-_"}]}'],
  ["a raw control character", '{"data":[{"embedding":"AAA\u0001"}]}'],
  ["no end", '{"data":[{"embedding":"AAAA'],
  ["nothing", '{"data":[{"embedding":""}]}'],
  ["a number", '{"data":[{"embedding":0}]}'],
  ["a number beside a vector", '{"data":[{"embedding":"AAAA"},{"index":1,"embedding":0}]}'],
  ["no vector", '{"data":[{"index":0}]}'],
  ["no item", '{"data":[]}'],
  ["one index twice", '{"data":[{"index":0,"embedding":"AAAA"},{"index":0,"embedding":"AAAB"}]}'],
])("a vector with %s is a broken answer", (_name, json) => {
  expect(() => decodeEmbeddings(bytes(json))).toThrow();
});
