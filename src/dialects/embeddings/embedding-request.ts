import { isObject, numberOf, textOf } from "../../domain/json-fields.ts";
import type {
  EmbeddingContent,
  EmbeddingInput,
  EmbeddingRequest,
} from "../../domain/chat/embedding.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { imagePart, textPart } from "../openai-chat/chat-message.ts";
import {
  arrayTooLong,
  integer,
  list,
  missing,
  object,
  oneOf,
  tagged,
  text,
} from "../request/checks.ts";
import { requireModel, requireObject } from "../request/parse-json.ts";

const mostInputs = 2048;

/**
 * Reads a parsed body of `POST /v1/embeddings`: one input or many, as text or token ids, or as
 * lists of texts and images. Inputs are not copied. Throws a `GatewayError` of status 400 with
 * OpenAI's message, `param` and `code`.
 */
export function parseEmbeddingRequest(body: unknown): EmbeddingRequest {
  const fields = requireObject(body);
  const model = requireModel(fields);
  const inputs = readInputs(fields["input"]);
  const violation = embeddingOptions(fields);
  if (violation !== undefined) throw violation.toError();
  const format = fields["encoding_format"];
  return {
    model,
    inputs,
    dimensions: numberOf(fields["dimensions"]),
    user: textOf(fields["user"]),
    inputType: textOf(fields["input_type"]),
    encodingFormat: format === "float" || format === "base64" ? format : undefined,
    sent: fields,
  };
}

const embeddingOptions = object({
  optional: {
    encoding_format: oneOf(["float", "base64"]),
    dimensions: integer({ minimum: 1 }),
    user: text(),
    // Servers accept different values, so the upstream refuses those that it does not support.
    input_type: text(),
  },
});

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
  if (items.some(hasContent) && items.every(isTextOrContent)) return items;
  throw invalidInput();
}

/** An extension of OpenAI's API: one vector for texts and images, written as chat message parts. */
const content = object({
  required: {
    content: list(tagged("type", { text: textPart, image_url: imagePart }), { of: "objects" }),
  },
});

function isTextOrContent(value: unknown, index: number): value is string | EmbeddingContent {
  if (!hasContent(value)) return isText(value);
  const violation = content(value);
  if (violation === undefined) return true;
  throw violation.insideItem(index).insideField("input").toError();
}

function hasContent(value: unknown): boolean {
  return isObject(value) && value["content"] !== undefined;
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
  const message = "'$.input' is invalid. Please check the API reference.";
  return new GatewayError("invalid_body", { message, param: "input" });
}
