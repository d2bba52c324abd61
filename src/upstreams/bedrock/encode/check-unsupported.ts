import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { isObject, listOf } from "../../shared/json-fields.ts";
import type { Adjustments } from "./adjustments.ts";

/**
 * Drops or refuses fields that would change the answer and have no equivalent at the provider.
 * Values without effect pass. Hints such as `seed`, `user`, `store` or `verbosity` are ignored: an
 * answer without them still answers the question.
 */
export function checkUnsupported(request: ChatRequest, adjustments: Adjustments): void {
  for (const [field, asksForSomething] of fields) {
    if (!asksForSomething(request[field])) continue;
    const message = `This model does not support ${field}. Remove it from the request.`;
    adjustments.dropOrRefuse(field, message);
  }
}

/** Each field with a test of its value. */
const fields: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ["presence_penalty", isOtherThanZero],
  ["frequency_penalty", isOtherThanZero],
  ["logit_bias", (value) => isObject(value) && Object.keys(value).length > 0],
  ["logprobs", (value) => value === true],
  ["top_logprobs", isOtherThanZero],
  ["modalities", (value) => listOf(value)?.includes("audio") === true],
  ["web_search_options", isObject],
  // Filters the content, which the caller relies on.
  ["moderation", isObject],
];

function isOtherThanZero(value: unknown): boolean {
  return typeof value === "number" && value !== 0;
}
