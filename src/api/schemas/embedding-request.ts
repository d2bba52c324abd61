import type { EmbeddingInput, EmbeddingRequest } from "../../domain/embedding.ts";
import { GatewayError } from "../../domain/gateway-error.ts";
import { arrayTooLong, integer, missing, object, oneOf, text, type JsonObject } from "./checks.ts";
import * as messages from "./messages.ts";
import { requireModel, requireObject } from "./request-body.ts";

const mostInputs = 2048;

/**
 * Reads a parsed body of `POST /v1/embeddings`: one input or many, as text or token ids. The
 * inputs are those of the body, not copies. Throws a `GatewayError` of status 400 with OpenAI's
 * message, `param` and `code`.
 */
export function parseEmbeddingRequest(body: unknown): EmbeddingRequest {
  const fields = requireObject(body);
  const model = requireModel(fields);
  const inputs = readInputs(fields["input"]);
  assertOptions(fields);
  return {
    model,
    inputs,
    dimensions: fields.dimensions ?? undefined,
    user: fields.user ?? undefined,
    encodingFormat: fields.encoding_format ?? "float",
    sent: fields,
  };
}

interface EmbeddingOptions {
  readonly encoding_format?: EmbeddingRequest["encodingFormat"] | null;
  readonly dimensions?: number | null;
  readonly user?: string | null;
}

const embeddingOptions = object({
  optional: {
    encoding_format: oneOf(["float", "base64"]),
    dimensions: integer({ minimum: 1 }),
    user: text(),
  },
});

function assertOptions(fields: JsonObject): asserts fields is JsonObject & EmbeddingOptions {
  const violation = embeddingOptions(fields);
  if (violation !== undefined) throw violation.toError();
}

function readInputs(input: unknown): readonly EmbeddingInput[] {
  if (input === undefined) throw missing("input").toError();
  if (isText(input)) return [input];
  if (!Array.isArray(input) || input.length === 0) throw invalidInput();
  if (input.length > mostInputs) {
    throw arrayTooLong(mostInputs, input.length).insideField("input").toError();
  }
  const items: readonly unknown[] = input;
  if (items.every(isText)) return items;
  if (items.every(isTokenId)) return [items];
  if (items.every(isTokenList)) return items;
  throw invalidInput();
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0;
}

function isTokenId(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isTokenList(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every(isTokenId);
}

function invalidInput(): GatewayError {
  return new GatewayError("invalid_body", { message: messages.invalidInput(), param: "input" });
}
