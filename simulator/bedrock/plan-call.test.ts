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

  test.each<[JsonRecord, string]>([
    [{}, "'inputText' failed to satisfy constraint: Member must not be null"],
    [{ inputText: "" }, "Member must have length greater than or equal to 1"],
    [{ inputText: "x".repeat(50_001) }, "Member must have length less than or equal to 50000"],
    [{ inputText: "word ".repeat(9000) }, "Too many input tokens. Max input tokens: 8192"],
    [{ inputText: "a", dimensions: 128 }, "'dimensions' failed to satisfy constraint"],
    [{ inputText: "a", input_type: "x" }, "extraneous key [input_type] is not permitted"],
    [{ inputText: ["a"] }, "LIST_VALUE cannot be converted to a String"],
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
    [{ texts: ["a"] }, 3, "'input_type' failed to satisfy constraint: Member must not be null"],
    [{ ...asked, texts: [] }, 3, "at 'texts' failed"],
    [{ ...asked, texts: Array.from({ length: 97 }, () => "a") }, 3, "at 'texts' failed"],
    [{ ...asked, texts: ["a", "b".repeat(2049)] }, 3, "at 'texts.2.member' failed"],
    [{ ...asked, truncate: "LEFT" }, 3, "Value 'LEFT' at 'truncate' failed"],
    [{ ...asked, truncate: "START" }, 4, "Value 'START' at 'truncate' failed"],
    [{ ...asked, output_dimension: 256 }, 3, "extraneous key [output_dimension]"],
    [{ ...asked, input_type: "query" }, 4, "Value 'query' at 'input_type' failed"],
    [{ ...asked, texts: ["word ".repeat(128_000)] }, 4, "Max input tokens: 128000"],
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
