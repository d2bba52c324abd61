import {
  isContent,
  type EmbeddingRequest,
  type EmbeddingResult,
  type EmbeddingVector,
} from "../../domain/chat/embedding.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { isNumbers, listOf, numberOf, objectOf } from "../shared/json-fields.ts";
import { brokenAnswer, parseAnswer, readUsage } from "./read-answer.ts";
import type { OpenAiSettings } from "./settings.ts";

export function encodeEmbeddings(
  request: EmbeddingRequest,
  model: string,
  settings: OpenAiSettings,
): string {
  const { inputs, dimensions, user } = request;
  const { embeddingEncoding } = settings;
  if (inputs.some(isContent)) throw onlyText();
  const body: Record<string, unknown> = {};
  for (const field of settings.forwardFields) body[field] = request.sent?.[field] ?? undefined;
  Object.assign(body, {
    model,
    input: inputs.length === 1 ? inputs[0] : inputs,
    encoding_format: embeddingEncoding === "as_sent" ? request.encodingFormat : embeddingEncoding,
    dimensions,
    user,
  });
  for (const field of settings.dropFields) delete body[field];
  return JSON.stringify(body);
}

/** OpenAI's API takes no other inputs. */
function onlyText(): UpstreamFailure {
  return new UpstreamFailure({
    kind: "unsupported",
    message: "This model takes texts and token ids as 'input', no lists of parts. Send a text.",
    param: "input",
  });
}

/** Reads a list of embeddings and sorts it by the `index` fields. */
export function decodeEmbeddings(body: Uint8Array): EmbeddingResult {
  const answer = parseAnswer(new TextDecoder().decode(body), "data");
  const items = listOf(answer["data"]) ?? [];
  const byIndex = new Map<number, EmbeddingVector>();
  items.forEach((value, position) => {
    const item = objectOf(value);
    byIndex.set(numberOf(item?.["index"]) ?? position, readVector(item?.["embedding"]));
  });
  const vectors = inOrder(byIndex);
  if (items.length === 0 || vectors.length !== items.length) {
    throw brokenAnswer("vectors are missing");
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

function readVector(value: unknown): EmbeddingVector {
  const isVector = typeof value === "string" || isNumbers(value);
  if (isVector && value.length > 0) return value;
  throw brokenAnswer("a vector is not one");
}
