import type { Conversation, Turn } from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isObject, type JsonObject } from "../../domain/json-fields.ts";
import { missing } from "../request/checks.ts";
import { mendArguments } from "../request/mend-arguments.ts";
import { requireModel, requireObject } from "../request/parse-json.ts";
import { responsesFields } from "./request-fields.ts";

/**
 * Checks a parsed body of `POST /v1/responses`, whose depth must be bounded already. The body itself
 * is returned, unknown fields included, without its null fields. Throws 400 with OpenAI's words.
 */
export function checkResponsesRequest(value: unknown): JsonObject {
  const body = requireObject(value);
  requireModel(body);
  nameOnlyCalls(itemsOf(body["input"]));
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

/** A result that names no call answers the only call before it that has no result. */
function nameOnlyCalls(items: readonly unknown[]): void {
  const open = new Set<unknown>();
  for (const item of items) {
    if (!isObject(item)) continue;
    if (item["type"] === "function_call") open.add(item["call_id"]);
    if (item["type"] !== "function_call_output") continue;
    const [only] = open;
    const isUnnamed = (item["call_id"] ?? undefined) === undefined;
    if (isUnnamed && open.size === 1) Object.assign(item, { call_id: only });
    open.delete(item["call_id"]);
  }
}

const chatAdvice =
  " The body has 'messages' and looks like a request of POST /v1/chat/completions; this endpoint " +
  "takes the conversation as 'input'.";

/** None of a text. */
export function itemsOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : [];
}

/** Throws 400 for a conversation that has nothing to answer. */
export function requireInput({ turns }: Conversation): void {
  if (turns.some(hasInput)) return;
  throw new GatewayError("empty_array", {
    message: "Invalid 'input': the conversation is empty. Send a text, or at least one item.",
    param: "input",
  });
}

/** Thoughts, unknown items and empty answers alone may leave nothing that a model can answer. */
function hasInput({ at, role, blocks }: Turn): boolean {
  if (at === "instructions") return false;
  return blocks.some((block) => {
    if ("text" in block && block.text === "" && role === "assistant") return false;
    return block.type !== "foreign" && block.type !== "reasoning";
  });
}
