import type { EmbeddingRequest, EmbeddingResult, EmbeddingVector } from "../../domain/embedding.ts";
import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import { isNumbers, isObject, listOf, numberOf, type JsonObject } from "../shared/json-fields.ts";
import { parseAnswer, readUsage } from "./read-answer.ts";
import type { OpenAiSettings } from "./settings.ts";

export function encodeEmbeddings(
  request: EmbeddingRequest,
  model: string,
  settings: OpenAiSettings,
): string {
  const { inputs, dimensions, user } = request;
  const { embeddingEncoding } = settings;
  const body: Record<string, unknown> = {
    model,
    input: inputs.length === 1 ? inputs[0] : inputs,
    encoding_format: embeddingEncoding === "as_sent" ? request.encodingFormat : embeddingEncoding,
    dimensions,
    user,
  };
  for (const field of settings.dropFields) delete body[field];
  return JSON.stringify(body);
}

/** Reads an embeddings list and puts it into the order of its `index` fields. */
export function decodeEmbeddings(body: Uint8Array): EmbeddingResult {
  const answer = parseAnswer(new TextDecoder().decode(body));
  const items = (listOf(answer["data"]) ?? []).filter(isObject);
  const byIndex = new Map<number, EmbeddingVector>();
  items.forEach((item, position) => {
    byIndex.set(numberOf(item["index"]) ?? position, readVector(item));
  });
  const vectors = inOrder(byIndex);
  if (items.length === 0 || vectors.length !== items.length) {
    throw new UpstreamFailure({ kind: "broken-answer", message: "vectors are missing" });
  }
  return { vectors, usage: readUsage(answer["usage"]) };
}

function inOrder(byIndex: ReadonlyMap<number, EmbeddingVector>): readonly EmbeddingVector[] {
  const vectors: EmbeddingVector[] = [];
  for (let index = 0; ; index += 1) {
    const vector = byIndex.get(index);
    if (vector === undefined) return vectors;
    vectors.push(vector);
  }
}

function readVector(item: JsonObject): EmbeddingVector {
  const { embedding } = item;
  const isText = typeof embedding === "string";
  if ((isText || isNumbers(embedding)) && embedding.length > 0) return embedding;
  throw new UpstreamFailure({ kind: "broken-answer", message: "a vector is not one" });
}
