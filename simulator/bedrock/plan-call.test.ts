import { describe, expect, test } from "bun:test";
import type { JsonRecord } from "../json.ts";
import { readCohereEmbedding, readTitanEmbedding } from "./embeddings.ts";
import { invocationReply } from "./plan-call.ts";

interface TitanAnswer {
  readonly embedding?: readonly number[];
}

function titan(body: JsonRecord): TitanAnswer {
  return readTitanEmbedding(body).answer;
}

describe("Titan", () => {
  test("answers equal texts with equal unit vectors, different texts with different ones", () => {
    const first = titan({ inputText: "blue whales" }).embedding ?? [];
    expect(first).toHaveLength(1024);
    expect(Math.hypot(...first)).toBeCloseTo(1, 5);
    expect(titan({ inputText: "blue whales" }).embedding).toEqual(first);
    expect(titan({ inputText: "red herrings" }).embedding).not.toEqual(first);
  });

  test.each([256, 512, 1024])("has vectors of %d dimensions", (dimensions) => {
    expect(titan({ inputText: "a", dimensions }).embedding).toHaveLength(dimensions);
  });

  test("does not normalise vectors if the request says so", () => {
    const unit = titan({ inputText: "whale" }).embedding ?? [];
    const plain = titan({ inputText: "whale", normalize: false }).embedding ?? [];
    expect(Math.hypot(...plain)).toBeGreaterThan(2);
    const product = unit.reduce((total, value, index) => total + value * (plain[index] ?? 0), 0);
    expect(product / Math.hypot(...plain)).toBeCloseTo(1, 5);
  });

  const tail = ", please reformat your input and try again.";
  test.each<[JsonRecord, string]>([
    [{}, `Malformed input request: #: required key [inputText] not found${tail}`],
    [{ inputText: "" }, `Malformed input request: expected minLength: 1, actual: 0${tail}`],
    [
      { inputText: "x".repeat(50_001) },
      `Malformed input request: expected maxLength: 50000, actual: 50001${tail}`,
    ],
    [
      { inputText: "word ".repeat(9000) },
      "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token " +
        "count: 9001",
    ],
    [
      { inputText: "a", dimensions: 128 },
      `Malformed input request: #/dimensions: 128 is not a valid enum value${tail}`,
    ],
    [
      { inputText: "a", input_type: "x" },
      `Malformed input request: #: extraneous key [input_type] is not permitted${tail}`,
    ],
    [{ inputText: ["a"] }, `Malformed input request: #/inputText: expected type: String${tail}`],
  ])("refuses %#", (body, message) => {
    expect(() => readTitanEmbedding(body)).toThrow(message);
  });
});

describe("Cohere", () => {
  const asked = { texts: ["one", "two three"], input_type: "search_document" };

  test("version 3 answers with a list, or by type if types are asked for", () => {
    const { answer, promptTokens } = readCohereEmbedding(asked, 3);
    expect(promptTokens).toBe(3);
    const vectors = answer["embeddings"] as number[][];
    expect(vectors.map((vector) => vector.length)).toEqual([1024, 1024]);
    const typed = readCohereEmbedding({ ...asked, embedding_types: ["float"] }, 3).answer;
    expect(typed["embeddings"]).toEqual({ float: vectors });
    expect(typed["response_type"]).toBe("embeddings_by_type");
  });

  test("version 4 answers by type, with the requested dimensions", () => {
    const { answer } = readCohereEmbedding({ ...asked, output_dimension: 256 }, 4);
    const { float } = answer["embeddings"] as { float: number[][] };
    expect(float.map((vector) => vector.length)).toEqual([256, 256]);
  });

  test.each<[JsonRecord, 3 | 4, string]>([
    [{ texts: ["a"] }, 3, "required key [input_type] not found"],
    [{ ...asked, texts: [] }, 3, "#/texts: expected minimum item count: 1, found: 0"],
    [
      { ...asked, texts: Array.from({ length: 97 }, () => "a") },
      3,
      "#/texts: expected maximum item count: 96, found: 97",
    ],
    [
      { ...asked, texts: ["a", "b".repeat(2049)] },
      3,
      "Malformed input request: #/texts/1: expected maxLength: 2048, actual: 2049, please",
    ],
    [{ ...asked, truncate: "LEFT" }, 3, "#/truncate: LEFT is not a valid enum value"],
    [{ ...asked, truncate: "START" }, 4, "#/truncate: START is not a valid enum value"],
    [{ ...asked, output_dimension: 256 }, 3, "extraneous key [output_dimension]"],
    [{ ...asked, input_type: "query" }, 4, "#/input_type: query is not a valid enum value"],
    [
      { ...asked, texts: ["word ".repeat(128_000)] },
      4,
      "Too many input tokens. Max input tokens: 128000",
    ],
  ])("refuses %#", (body, version, message) => {
    expect(() => readCohereEmbedding(body, version)).toThrow(message);
  });
});

test.each([
  ["ok", "3"],
  ["wrong-usage", "40"],
  ["ok-no-usage", undefined],
] as const)("with %s the header says the count %p", (mode, count) => {
  const { headers } = invocationReply(
    { answer: {}, promptTokens: 3 },
    { mode, argument: undefined },
  );
  expect(headers["x-amzn-bedrock-input-token-count"]).toBe(count);
});
