import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { readCounts } from "./read-counts.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import {
  countOf,
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  objectOf,
  parseJson,
} from "../../../domain/json-fields.ts";
import { errorIn, messageOf } from "./error-body.ts";
import { classifyError } from "./read-failure.ts";

/**
 * Parses JSON that should be an answer with this field. A 200 that contains an error is a failure,
 * and so is one with an error message instead of the field.
 */
export function parseAnswer(text: string, field: "choices" | "data"): JsonObject {
  const value = parseJson(text);
  // Google sends its errors in a list.
  const [first] = listOf(value) ?? [];
  if (isObject(first)) refuseError(first, field);
  if (!isObject(value)) throw brokenAnswer("the upstream's answer is not the expected JSON");
  refuseError(value, field);
  return value;
}

/** Throws for an error instead of an answer, or along with one. */
export function refuseError(value: JsonObject, field: "choices" | "data"): void {
  const isMarked = value["object"] === "error";
  const mayBeFlat = value[field] === undefined || value[field] === null;
  const isFlat = isMarked || (mayBeFlat && messageOf(value) !== undefined);
  const error = errorIn(value) ?? (isFlat ? value : errorInChoice(value));
  if (error === undefined) return;
  throw new UpstreamFailure(classifyError(undefined, error)).withUsage(readUsage(value["usage"]));
}

/** OpenRouter's place for an error of one provider; it may be inside the message, too. */
function errorInChoice({ choices }: JsonObject): JsonObject | undefined {
  for (const choice of listOf(choices) ?? []) {
    if (!isObject(choice)) continue;
    const said = objectOf(choice["delta"]) ?? objectOf(choice["message"]);
    const error = errorIn(choice) ?? (said && errorIn(said));
    if (error !== undefined) return error;
  }
  return undefined;
}

/** The text of a message or of its parts; undefined if it has none. Throws for anything else. */
export function readContent(content: unknown): string | undefined {
  if (content === undefined || content === null) return undefined;
  if (typeof content === "string") return content;
  // Parts of other types, such as thoughts, are not part of the text.
  const texts = listOf(content)?.map((part) => (isObject(part) ? (part["text"] ?? "") : part));
  if (texts !== undefined && isTexts(texts)) return texts.join("");
  throw brokenAnswer("the content of a message is not text");
}

/** Thoughts among the parts of a message, as Mistral writes them; undefined if there are none. */
export function readThoughts(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const thoughts = content.flatMap((part) =>
    isObject(part) && part["type"] === "thinking" ? [readContent(part["thinking"])] : [],
  );
  return nonEmpty(thoughts.join(""));
}

function isTexts(values: readonly unknown[]): values is readonly string[] {
  return values.every((value) => typeof value === "string");
}

/** Undefined when it has no count. `serviceTier`: the tier of its price. */
export function readUsage(value: unknown, serviceTier?: string): TokenUsage | undefined {
  const usage = objectOf(value);
  if (usage === undefined) return undefined;
  const inputDetails = objectOf(usage["prompt_tokens_details"]);
  const outputDetails = objectOf(usage["completion_tokens_details"]);
  return readCounts({
    input: countOf(usage["prompt_tokens"]),
    output: countOf(usage["completion_tokens"]),
    total: countOf(usage["total_tokens"]),
    // DeepSeek's field at the top, beside OpenAI's.
    cached: countOf(inputDetails?.["cached_tokens"]) ?? countOf(usage["prompt_cache_hit_tokens"]),
    // OpenRouter's field, then LiteLLM's.
    cacheWrite:
      countOf(inputDetails?.["cache_write_tokens"]) ??
      countOf(inputDetails?.["cache_creation_tokens"]),
    reasoning: countOf(outputDetails?.["reasoning_tokens"]),
    serviceTier,
  });
}

/** The input of an embeddings answer, of which some servers tell only the total. */
export function readInputUsage(value: unknown): TokenUsage | undefined {
  const usage = objectOf(value);
  const prompt = countOf(usage?.["prompt_tokens"]);
  const input = prompt || (countOf(usage?.["total_tokens"]) ?? prompt);
  if (input === undefined) return undefined;
  return { inputTokens: input, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
}
