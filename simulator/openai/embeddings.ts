import { countTokens } from "../answer/prompt.ts";
import { textVector } from "../answer/random.ts";
import type { Fault } from "../faults/fault-modes.ts";
import type { Reply } from "../reply.ts";
import { isList, type JsonRecord } from "../json.ts";
import { bodyReply, invalidRequest, missing, tooLong, WireError, wrongType } from "./errors.ts";
import { readInteger, readModel } from "./request.ts";

const maxInputs = 2048;
const defaultDimensions = 1024;
const maxDimensions = 16_384;

type EmbeddingInput = string | readonly number[];

interface EmbeddingRequest {
  readonly model: string;
  readonly inputs: readonly EmbeddingInput[];
  readonly dimensions: number;
  readonly isBase64: boolean;
  readonly promptTokens: number;
}

/** Throws `WireError` if OpenAI would refuse the request. */
export function readEmbeddingRequest(body: JsonRecord): EmbeddingRequest {
  const model = readModel(body);
  const inputs = readInputs(body["input"]);
  const format = body["encoding_format"] ?? "float";
  if (format !== "float" && format !== "base64") {
    throw invalidRequest(`Invalid value: ${JSON.stringify(format)}.`, "encoding_format");
  }
  return {
    model,
    inputs,
    dimensions: readInteger(body, "dimensions", [1, maxDimensions]) ?? defaultDimensions,
    isBase64: format === "base64",
    promptTokens: inputs.reduce((total, input) => total + countInput(input), 0),
  };
}

export function embeddingsReply(request: EmbeddingRequest, fault: Fault): Reply {
  const { model, inputs, promptTokens } = request;
  const data = inputs.map((input, index) => {
    // Equal ids are equal words.
    const vector = textVector(
      typeof input === "string" ? input : input.join(" id"),
      request.dimensions,
    );
    return { object: "embedding", index, embedding: encoded(vector, request.isBase64) };
  });
  const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
  return bodyReply({ object: "list", data, model, usage }, 0, fault);
}

/** Base64 contains little-endian 32-bit floats, the layout in memory. */
function encoded(vector: Float32Array<ArrayBuffer>, isBase64: boolean): string | number[] {
  return isBase64 ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector);
}

function readInputs(input: unknown): readonly EmbeddingInput[] {
  if (input === undefined || input === null) throw missing("input");
  // OpenAI bounds a list of token ids like a list of inputs.
  if (isList(input) && input.length > maxInputs) throw tooLong("input", maxInputs, input.length);
  const items = typeof input === "string" || isTokenIds(input) ? [input] : input;
  if (!isList(items)) throw wrongType("input", "one of a string or array", input);
  if (items.length > 0 && items.every(isInput)) return items;
  throw new WireError(400, { message: "'$.input' is invalid. Please check the API reference." });
}

function isInput(item: unknown): item is EmbeddingInput {
  return (typeof item === "string" && item !== "") || isTokenIds(item);
}

function isTokenIds(value: unknown): value is readonly number[] {
  return isList(value) && value.length > 0 && value.every((id) => Number.isInteger(id));
}

function countInput(input: EmbeddingInput): number {
  return typeof input === "string" ? countTokens(input) : input.length;
}
