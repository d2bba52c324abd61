import {
  isContent,
  type EmbeddingRequest,
  type EmbeddingResult,
  type EmbeddingVector,
} from "../../../domain/chat/embedding.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { isNumbers, listOf, numberOf, objectOf } from "../../shared/json-fields.ts";
import { brokenAnswer, parseAnswer, readInputUsage } from "../read-answer.ts";
import { unpackVectors } from "./packed-vectors.ts";
import type { OpenAiSettings } from "../settings.ts";

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

/** OpenAI's API accepts no other inputs. */
function onlyText(): UpstreamFailure {
  return new UpstreamFailure({
    kind: "unsupported",
    message: "This model accepts texts and token ids as 'input', not lists of parts. Send a text.",
    param: "input",
  });
}

/** Reads a list of embeddings and sorts it by the `index` fields. */
export function decodeEmbeddings(body: Uint8Array): EmbeddingResult {
  const unpacked = unpackVectors(body);
  if (unpacked !== undefined) {
    const { json, vectors } = unpacked;
    const result = readAnswer(json, (place) => vectors[numberOf(place) ?? -1]);
    if (result !== undefined) return result;
  }
  const result = readAnswer(new TextDecoder().decode(body), readVector);
  if (result === undefined) throw brokenAnswer("vectors are missing");
  return result;
}

/** Undefined if vectors are missing. */
function readAnswer(
  json: string,
  vectorOf: (value: unknown) => EmbeddingVector | undefined,
): EmbeddingResult | undefined {
  const answer = parseAnswer(json, "data");
  const items = listOf(answer["data"]) ?? [];
  const byIndex = new Map<number, EmbeddingVector>();
  items.forEach((value, position) => {
    const item = objectOf(value);
    const vector = vectorOf(item?.["embedding"]);
    if (vector !== undefined) byIndex.set(numberOf(item?.["index"]) ?? position, vector);
  });
  const vectors = inOrder(byIndex);
  if (items.length === 0 || vectors.length !== items.length) return undefined;
  return { vectors, usage: readInputUsage(answer["usage"]) };
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
  if (typeof value === "string" && value !== "") return normalizedBase64(value);
  if (isNumbers(value) && value.length > 0) return value;
  throw brokenAnswer("a vector is not a list of numbers");
}

/** Some servers insert line breaks, or leave out the padding. */
function normalizedBase64(text: string): string {
  try {
    return Uint8Array.fromBase64(text).toBase64();
  } catch (error) {
    throw brokenAnswer("a vector is not base64", error);
  }
}
