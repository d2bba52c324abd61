import fc from "fast-check";
import { expect, test } from "bun:test";
import { VectorScan } from "../../domain/chat/vector-scan.ts";
import type { EmbeddingResult } from "../../domain/chat/embedding.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { decodeEmbeddings } from "./embeddings.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
function decode(json: string): EmbeddingResult {
  const scan = new VectorScan(100);
  scan.push(bytes(json));
  return decodeEmbeddings(scan.end());
}
const numbersOf = ({ vectors }: EmbeddingResult): readonly (readonly number[])[] =>
  vectors.map((vector) => Array.from(vector.numbers));
const base64Of = (numbers: readonly number[]): string =>
  Buffer.from(new Float32Array(numbers).buffer).toString("base64");

const usageOf = (inputTokens: number): TokenUsage => ({
  inputTokens,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
});

const space = fc.constantFrom("", " ", "\n", " \r\n\t");
const numbers = fc.array(
  fc.float({ noNaN: true, noDefaultInfinity: true }).map((x) => x + 0),
  {
    minLength: 1,
    maxLength: 20,
  },
);
/** Texts that quote the field that is searched for. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom('"embedding":"AAAA"', '\\"embedding":"', "embedding", '{"embedding":[1]}', "[1"),
);

const answer = fc.record({
  vectors: fc.array(numbers, { minLength: 1, maxLength: 6 }),
  isBase64: fc.boolean(),
  model: text,
  before: fc.array(text, { maxLength: 3 }),
  tokens: fc.nat(),
  pad: space,
  isReversed: fc.boolean(),
  pieceBytes: fc.integer({ min: 1, max: 200 }),
  leastBytes: fc.integer({ min: 1, max: 200 }),
});

test("vectors taken out of an answer are those that a parser finds, however it is split", () => {
  fc.assert(
    fc.property(answer, ({ vectors, isBase64, model, before, tokens, pad, ...how }) => {
      const data = vectors.map((vector, index) => ({
        note: before,
        object: "embedding",
        embedding: isBase64 ? base64Of(vector) : vector,
        index,
      }));
      const whole = {
        model,
        object: "list",
        data: how.isReversed ? data.toReversed() : data,
        usage: { prompt_tokens: tokens },
      };
      const json = JSON.stringify(whole).replaceAll('"embedding":', `"embedding"${pad}:${pad}`);
      const scan = new VectorScan(100, how.leastBytes);
      const sent = bytes(json);
      for (let at = 0; at < sent.byteLength; at += how.pieceBytes) {
        scan.push(sent.subarray(at, at + how.pieceBytes));
      }
      const result = decodeEmbeddings(scan.end());
      expect(numbersOf(result)).toEqual(vectors.map((vector) => vector.map((x) => x + 0)));
      expect(result.usage?.inputTokens).toBe(tokens);
    }),
    { numRuns: 1_000 },
  );
});

test("base64 goes on as it came, or in the form that all clients read", () => {
  const way = fc.constantFrom("as it is", "without padding", "in lines", "with loose bits");
  fc.assert(
    fc.property(numbers, way, (vector, how) => {
      const plain = base64Of(vector);
      const bare = plain.replace(/=+$/, "");
      const isLoose = how === "with loose bits" && bare.length < plain.length;
      const sent = {
        "as it is": plain,
        "without padding": bare,
        "in lines": plain.replaceAll(/.{6}/g, "$&\r\n"),
        // The digit after the last one differs from it in a bit that stands for nothing.
        "with loose bits": isLoose ? plain.replace(/.(?==)/, nextDigit) : plain,
      }[how];
      const json = JSON.stringify({ data: [{ embedding: sent }] });
      const [read] = decode(json).vectors;
      expect(read?.base64).toBe(isLoose ? sent : plain);
      expect(read?.length).toBe(vector.length);
      expect(Array.from(read?.numbers ?? [])).toEqual(vector);
    }),
  );
});

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const nextDigit = (digit: string): string => digits[digits.indexOf(digit) + 1] ?? digit;

test("numbers keep all their digits", () => {
  expect(numbersOf(decode('{"data":[{"embedding":[0.1,-1e-9,0.10000000149011612]}]}'))).toEqual([
    [0.1, -1e-9, 0.10000000149011612],
  ]);
});

test.each([
  ["an escaped slash", String.raw`{"data":[{"embedding":"AACAP\/8AAAA="}]}`, 2],
  ["broken lines", String.raw`{"data":[{"embedding":"AACA\r\nPw=="}]}`, 1],
  ["no padding", '{"data":[{"embedding":"AACAPw"}]}', 1],
  ["an escaped name", String.raw`{"data":[{"embeddin\u0067":"AACAPw=="}]}`, 1],
])("base64 with %s is read too", (_name, json, length) => {
  if (length === 2) return expect(() => decode(json)).not.toThrow(/base64/);
  expect(numbersOf(decode(json))).toEqual([[1]]);
});

test.each([
  ["no index at the first", '{"data":[{"embedding":[1]},{"index":1,"embedding":[2]}]}'],
  ["no index", '{"data":[{"embedding":[1]},{"embedding":[2]}]}'],
  ["another order", '{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}]}'],
  ["other lists beside them", '{"shape":[2,1],"data":[{"embedding":[1]},{"embedding":[2]}]}'],
])("vectors with %s are read in order", (_name, json) => {
  expect(numbersOf(decode(json))).toEqual([[1], [2]]);
});

test.each([
  ["text that is not base64", '{"data":[{"embedding":"no, not a vector"}]}'],
  ["text in another alphabet", '{"data":[{"embedding":"AA-_AA=="}]}'],
  ["a raw control character", '{"data":[{"embedding":"AACAPw\u0001"}]}'],
  ["a cut base64", '{"data":[{"embedding":"AACA"}]}'],
  ["a base64 of NaN", `{"data":[{"embedding":"${base64Of([1, Number.NaN])}"}]}`],
  ["a base64 of Infinity", `{"data":[{"embedding":"${base64Of([Infinity])}"}]}`],
  ["no end", '{"data":[{"embedding":"AACAPw=='],
  ["nothing in its text", '{"data":[{"embedding":""}]}'],
  ["nothing in its list", '{"data":[{"embedding":[]}]}'],
  ["a number", '{"data":[{"embedding":0}]}'],
  ["a number beside a vector", '{"data":[{"embedding":[1]},{"index":1,"embedding":0}]}'],
  ["null", '{"data":[{"embedding":[1,null]}]}'],
  ["NaN", '{"data":[{"embedding":[1,NaN]}]}'],
  ["a number that is too large", '{"data":[{"embedding":[1e39]}]}'],
  ["a number beyond all", '{"data":[{"embedding":[1e999]}]}'],
  ["texts", '{"data":[{"embedding":["1"]}]}'],
  ["lists", '{"data":[{"embedding":[[1],[2]]}]}'],
  ["no vector", '{"data":[{"index":0}]}'],
  ["no item", '{"data":[]}'],
  ["one index twice", '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}'],
  ["an index too far", '{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[2]}]}'],
  ["a broken index", '{"data":[{"index":0.5,"embedding":[1]}]}'],
  ["too many lists", `{"data":[{"embedding":[1],"more":[${"[1],".repeat(100)}[1]]}]}`],
])("a vector with %s is a broken answer", (_name, json) => {
  expect(() => decode(json)).toThrow();
});

test("what a broken answer has cost is known if it says so", () => {
  const json = '{"data":[{"index":1,"embedding":[1]}],"usage":{"prompt_tokens":7}}';
  expect(() => decode(json)).toThrow(
    expect.objectContaining({ details: expect.objectContaining({ usage: usageOf(7) }) }),
  );
});

test("a text that is longer than any vector is a broken answer", () => {
  const text = `{"data":[{"embedding":"${"A".repeat(4_000_000)}`;
  const scan = new VectorScan(100);
  expect(() => scan.push(bytes(text))).toThrow(
    expect.objectContaining({ details: expect.objectContaining({ kind: "broken-answer" }) }),
  );
});

test.each([
  ["lists in lists", "[1,".repeat(500_000)],
  ["lists in lists that end", `${"[1,".repeat(500_000)}1]`],
  ["brackets", "[".repeat(1_000_000)],
  ["quotes", '\\"'.repeat(500_000)],
  ["backslashes", `"${"\\".repeat(1_000_000)}`],
  ["a list without an end", `[${"1,".repeat(2_000_000)}`],
  ["a vector without an end", `{"data":[{"embedding":"${"A".repeat(4_000_000)}`],
  ["many small lists", `{"data":[${"[1],".repeat(500_000)}[1]]}`],
])("an answer of %s is refused in as many steps as it has bytes", (_name, json) => {
  const sent = bytes(json);
  expect(() => {
    const scan = new VectorScan(100);
    for (let at = 0; at < sent.byteLength; at += 1_000) scan.push(sent.subarray(at, at + 1_000));
    decodeEmbeddings(scan.end());
  }).toThrow();
});
