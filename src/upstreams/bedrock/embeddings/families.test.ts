import { expect, test } from "bun:test";
import type {
  EmbeddingInput,
  EmbeddingRequest,
  EmbeddingResult,
} from "../../../domain/chat/embedding.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { embeddingWires } from "./families.ts";
import { VectorScan } from "../../../domain/chat/vector-scan.ts";
import type { EmbeddingFamily } from "../models/facts.ts";

const settings = { inputType: "search_document", truncate: "end" } as const;

function requestOf(inputs: readonly EmbeddingInput[], dimensions?: number): EmbeddingRequest {
  return { model: "alias", inputs, dimensions, user: undefined, encodingFormat: "float" };
}

function bodyOf(family: EmbeddingFamily, request: EmbeddingRequest): unknown {
  return JSON.parse(embeddingWires[family].encode(request, settings));
}

function answerOf(body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const scan = new VectorScan(10);
  scan.push(new TextEncoder().encode(text));
  return { headers: new Headers(headers), ...scan.end() };
}

function numbersOf({ vectors }: EmbeddingResult): readonly (readonly number[])[] {
  return vectors.map((vector) => Array.from(vector.numbers));
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
  expect(embeddingWires["titan-embed-v2"].batchLimit(requestOf(["words"]))).toBe(1);
});

const image = "data:image/png;base64,iVBORw0KGgo=";
const mixed = { content: [{ type: "text", text: "a" }, imagePart(image)] } as const;

function imagePart(url: string) {
  return { type: "image_url", image_url: { url } } as const;
}

test.each<[EmbeddingFamily, EmbeddingRequest, unknown]>([
  ["titan-embed-v1", requestOf(["words"]), { inputText: "words" }],
  ["titan-embed-image", requestOf([image]), { inputImage: "iVBORw0KGgo=" }],
  [
    "titan-embed-image",
    requestOf([mixed], 256),
    {
      inputText: "a",
      inputImage: "iVBORw0KGgo=",
      embeddingConfig: { outputEmbeddingLength: 256 },
    },
  ],
  [
    "nova-embed",
    requestOf(["words"]),
    {
      schemaVersion: "nova-multimodal-embed-v1",
      taskType: "SINGLE_EMBEDDING",
      singleEmbeddingParams: {
        embeddingPurpose: "GENERIC_INDEX",
        embeddingDimension: 3072,
        text: { truncationMode: "END", value: "words" },
      },
    },
  ],
  [
    "nova-embed",
    { ...requestOf([image], 384), inputType: "search_query" },
    {
      schemaVersion: "nova-multimodal-embed-v1",
      taskType: "SINGLE_EMBEDDING",
      singleEmbeddingParams: {
        embeddingPurpose: "GENERIC_RETRIEVAL",
        embeddingDimension: 384,
        image: { format: "png", source: { bytes: "iVBORw0KGgo=" } },
      },
    },
  ],
  [
    "cohere-embed-v3",
    requestOf([image]),
    { images: [image], input_type: "image", embedding_types: ["float"] },
  ],
  [
    "cohere-embed-v4",
    { ...requestOf(["words", mixed]), inputType: "clustering" },
    {
      inputs: [
        { content: [{ type: "text", text: "words" }] },
        {
          content: [
            { type: "text", text: "a" },
            { type: "image_url", image_url: image },
          ],
        },
      ],
      input_type: "clustering",
      embedding_types: ["float"],
      truncate: "RIGHT",
    },
  ],
])("%s is asked in the words of its schema: %#", (family, request, body) => {
  expect(bodyOf(family, request)).toEqual(body);
});

test("the format of an image is that of its bytes", () => {
  const mislabelled = requestOf([image.replace("png", "jpeg")]);
  expect(bodyOf("nova-embed", mislabelled)).toEqual(bodyOf("nova-embed", requestOf([image])));
  expect(bodyOf("cohere-embed-v4", mislabelled)).toEqual(
    bodyOf("cohere-embed-v4", requestOf([image])),
  );
});

test("requests with images go to Cohere's version 3 one by one", () => {
  const wire = embeddingWires["cohere-embed-v3"];
  expect(wire.batchLimit(requestOf(["words"]))).toBe(96);
  expect(wire.batchLimit(requestOf(["words", image]))).toBe(1);
});

test("Cohere's versions have their own words for truncation", () => {
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
  ["titan-embed-v1", 1024],
  ["titan-embed-v2", 1536],
  ["titan-embed-image", 512],
  ["nova-embed", 512],
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

test("Nova's answer has its vectors in items, and its count in a header", () => {
  const result = embeddingWires["nova-embed"].decode(
    answerOf(
      { embeddings: [{ embeddingType: "TEXT", embedding: [0.5] }] },
      { "x-amzn-bedrock-input-token-count": "4" },
    ),
  );
  expect(numbersOf(result)).toEqual([[0.5]]);
  expect(result.usage?.inputTokens).toBe(4);
});

test("Titan's answer has its count in the body", () => {
  const result = embeddingWires["titan-embed-v2"].decode(
    answerOf({ embedding: [0.5, -0.5], inputTextTokenCount: 7 }),
  );
  expect(numbersOf(result)).toEqual([[0.5, -0.5]]);
  expect(result.usage?.inputTokens).toBe(7);
});

test.each([
  ["a list", { embeddings: [[1], [2]] }],
  ["lists by type", { embeddings: { float: [[1], [2]] }, response_type: "embeddings_by_type" }],
] as const)("Cohere's answer as %s has its count in a header", (_, body) => {
  const wire = embeddingWires["cohere-embed-v4"];
  const result = wire.decode(answerOf(body, { "x-amzn-bedrock-input-token-count": "9" }));
  expect(numbersOf(result)).toEqual([[1], [2]]);
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

test("what a broken answer has cost is known if it says so", () => {
  const body = { embedding: ["a"], inputTextTokenCount: 7 };
  expect(() => embeddingWires["titan-embed-v2"].decode(answerOf(body))).toThrow(
    expect.objectContaining({
      details: expect.objectContaining({ usage: expect.objectContaining({ inputTokens: 7 }) }),
    }),
  );
});
