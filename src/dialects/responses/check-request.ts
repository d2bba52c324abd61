import type { Conversation } from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isObject, type JsonObject, textOf } from "../../domain/json-fields.ts";
import { clip, missing } from "../request/checks.ts";
import { mendArguments } from "../request/mend-arguments.ts";
import { requireModel, requireObject } from "../request/parse-json.ts";
import { itemType, responsesFields } from "./request-fields.ts";

/**
 * Checks a parsed body of `POST /v1/responses`, whose depth must be bounded already. The body itself
 * is returned, unknown fields included, without its null fields. Throws 400 with OpenAI's words.
 */
export function checkResponsesRequest(value: unknown): JsonObject {
  const body = requireObject(value);
  requireModel(body);
  const violation = responsesFields(body);
  if (violation !== undefined) throw violation.toError();
  const { input } = body;
  if (input === undefined && body["previous_response_id"] === undefined) {
    throw missing("input", body["messages"] === undefined ? "" : chatAdvice).toError();
  }
  for (const item of itemsOf(input)) {
    if (isObject(item) && item["type"] === "function_call") mendArguments(item);
  }
  return body;
}

const chatAdvice =
  " The body has 'messages' and looks like a request of POST /v1/chat/completions; this endpoint " +
  "takes the conversation as 'input'.";

function itemsOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : [];
}

/**
 * The body without references to stored items: a thought or a message by reference is left out, a
 * call is not, since its output would answer nothing. Throws 400.
 */
export function withoutReferences(body: JsonObject): JsonObject {
  const previous = textOf(body["previous_response_id"]);
  if (previous !== undefined) throw previousNotFound(previous);
  const items = itemsOf(body["input"]);
  if (!items.some(isReference)) return body;
  items.forEach((item, index) => {
    const id = isReference(item) ? (textOf(item["id"]) ?? "") : undefined;
    if (id !== undefined && !/^(?:rs|msg)_/.test(id)) throw itemNotFound(id, index);
  });
  return { ...body, input: items.filter((item) => !isReference(item)) };
}

function isReference(item: unknown): item is JsonObject {
  return isObject(item) && itemType(item) === "item_reference";
}

function previousNotFound(id: string): GatewayError {
  return new GatewayError("previous_response_not_found", {
    message: `Previous response with id '${clip(id)}' not found.`,
    param: "previous_response_id",
  });
}

function itemNotFound(id: string, index: number): GatewayError {
  return new GatewayError("invalid_body", {
    message:
      `Item with id '${clip(id)}' not found. Items are not persisted when \`store\` is set to ` +
      "false. Send the item itself in place of the reference.",
    param: `input[${index}].id`,
  });
}

/** Throws 400 for what only the whole conversation shows. */
export function checkConversation({ turns, format }: Conversation): void {
  if (turns.every(({ at }) => at === "instructions")) {
    throw new GatewayError("empty_array", {
      message: "Invalid 'input': the conversation is empty. Send a text, or at least one item.",
      param: "input",
    });
  }
  if (format?.type === "json" && !turns.some(saysJson)) {
    throw new GatewayError("invalid_body", {
      message:
        "Response input messages must contain the word 'json' in some form to use 'text.format' of " +
        "type 'json_object'.",
      param: "input",
    });
  }
}

/** A model that must write JSON without being told may write white space until its limit. */
function saysJson({ blocks }: Conversation["turns"][number]): boolean {
  return blocks.some((block) => {
    const parts = block.type === "tool-result" ? block.content : [block];
    return parts.some((part) => part.type === "text" && /json/i.test(part.text));
  });
}
