import { expect, test } from "bun:test";
import type { EmbeddingRequest } from "../../domain/embedding.ts";
import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import { embeddingWires } from "./embeddings.ts";
import type { EmbeddingFamily } from "./model-families.ts";

const settings = { inputType: "search_document", truncate: "end" } as const;

function requestOf(inputs: readonly string[], dimensions?: number): EmbeddingRequest {
  return { model: "alias", inputs, dimensions, user: undefined, encodingFormat: "float" };
}

function bodyOf(family: EmbeddingFamily, request: EmbeddingRequest): unknown {
  return JSON.parse(embeddingWires[family].encode(request, settings));
}

function answerOf(body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { headers: new Headers(headers), body: new TextEncoder().encode(text) };
}

test("Titan is asked for one text, normalised, with the caller's dimensions", () => {
  expect(bodyOf("titan-embed-v2", requestOf(["words"], 512))).toEqual({
    inputText: "words",
    dimensions: 512,
    normalize: true,
  });
  expect(bodyOf("titan-embed-v2", requestOf(["words"]))).toEqual({
    inputText: "words",
    normalize: true,
  });
  expect(embeddingWires["titan-embed-v2"].batchLimit).toBe(1);
});

test("Cohere's versions name the ends that may be cut in words of their own", () => {
  const common = {
    texts: ["one", "two"],
    input_type: "search_document",
    embedding_types: ["float"],
  };
  const request = requestOf(["one", "two"]);
  expect(bodyOf("cohere-embed-v3", request)).toEqual({ ...common, truncate: "END" });
  expect(bodyOf("cohere-embed-v4", requestOf(["one", "two"], 256))).toEqual({
    ...common,
    truncate: "RIGHT",
    output_dimension: 256,
  });
});

test.each([
  ["titan-embed-v2", 1536],
  ["cohere-embed-v3", 512],
  ["cohere-embed-v4", 2048],
] as const)("%s refuses %d dimensions and names the field", (family, dimensions) => {
  try {
    bodyOf(family, requestOf(["words"], dimensions));
    expect.unreachable();
  } catch (error) {
    const details = error instanceof UpstreamFailure ? error.details : undefined;
    expect(details).toMatchObject({ kind: "unsupported", param: "dimensions" });
    expect(details?.message).toContain(String(dimensions));
  }
});

test("Titan's answer has its count in the body", () => {
  const result = embeddingWires["titan-embed-v2"].decode(
    answerOf({ embedding: [0.5, -0.5], inputTextTokenCount: 7 }),
  );
  expect(result.vectors).toEqual([[0.5, -0.5]]);
  expect(result.usage?.inputTokens).toBe(7);
});

test.each([
  ["a list", { embeddings: [[1], [2]] }],
  ["lists by type", { embeddings: { float: [[1], [2]] }, response_type: "embeddings_by_type" }],
] as const)("Cohere's answer as %s has its count in a header", (_, body) => {
  const wire = embeddingWires["cohere-embed-v4"];
  const result = wire.decode(answerOf(body, { "x-amzn-bedrock-input-token-count": "9" }));
  expect(result.vectors).toEqual([[1], [2]]);
  expect(result.usage?.inputTokens).toBe(9);
  expect(wire.decode(answerOf(body)).usage).toBeUndefined();
});

test.each([
  ["HTML", "<html></html>"],
  ["no vector", {}],
  ["an empty vector", { embedding: [] }],
  ["words in the vector", { embedding: ["a"] }],
])("%s is a broken answer", (_, body) => {
  expect(() => embeddingWires["titan-embed-v2"].decode(answerOf(body))).toThrow(UpstreamFailure);
});
