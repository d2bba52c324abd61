import { finishReasons, type FinishReason } from "../../domain/chat/chat.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { readCounts } from "../../domain/usage/read-counts.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { countOf, isObject, listOf, objectOf, type JsonObject } from "../shared/json-fields.ts";
import { errorIn, messageOf } from "./error-body.ts";
import { classifyError } from "./read-failure.ts";

/**
 * Parses JSON that should be an answer with this field. A 200 that contains an error is a failure,
 * and so is one with an error message instead of the field.
 */
export function parseAnswer(text: string, field: "choices" | "data"): JsonObject {
  const value = parseJson(text);
  if (!isObject(value)) throw notAnAnswer();
  refuseError(value, field);
  return value;
}

/** Throws for an error instead of an answer, or along with one. */
export function refuseError(value: JsonObject, field: "choices" | "data"): void {
  const isMarked = value["object"] === "error";
  const mayBeFlat = value[field] === undefined || value[field] === null;
  const isFlat = isMarked || (mayBeFlat && messageOf(value) !== undefined);
  const error = errorIn(value) ?? (isFlat ? value : undefined);
  if (error !== undefined) throw new UpstreamFailure(classifyError(undefined, error));
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

function isTexts(values: readonly unknown[]): values is readonly string[] {
  return values.every((value) => typeof value === "string");
}

export function brokenAnswer(message: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message }, { cause });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notAnAnswer(error);
  }
}

function notAnAnswer(cause?: unknown): UpstreamFailure {
  return brokenAnswer("the upstream's answer is not the expected JSON", cause);
}

/** Undefined when it has no count. */
export function readUsage(value: unknown): TokenUsage | undefined {
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

/** What a choice contains, apart from its text, when it ends. */
export interface FinishedChoice {
  readonly hasToolCalls: boolean;
  readonly hasFunctionCall: boolean;
}

/**
 * One of OpenAI's five reasons; servers have many more names for them. Agents stop at `stop`, so a
 * choice with a call that must be answered never has it.
 */
export function readFinishReason(value: string, choice: FinishedChoice): FinishReason {
  const reason = readReason(value);
  if (reason !== "stop") return reason;
  if (choice.hasToolCalls) return "tool_calls";
  return choice.hasFunctionCall ? "function_call" : "stop";
}

function readReason(value: string): FinishReason {
  if (value === "error") {
    throw brokenAnswer("the upstream gave up on it");
  }
  const known = finishReasons.find((reason) => reason === value);
  return known ?? synonyms.get(value.toLowerCase()) ?? "stop";
}

const synonyms: ReadonlyMap<string, FinishReason> = new Map([
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["max_length", "length"],
  ["tool_use", "tool_calls"],
  ["tool_call", "tool_calls"],
  ["function", "function_call"],
  ["safety", "content_filter"],
  ["content_filtered", "content_filter"],
  ["guardrail_intervened", "content_filter"],
]);
