import type { FinishReason } from "../../domain/chat/answer.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isObject, type JsonObject, objectOf, textOf } from "../../domain/json-fields.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";

/** The fields of a response that repeat the request, in OpenAI's form. */
export function echoOf(body: JsonObject): JsonObject {
  const asked = (field: string, otherwise: unknown): unknown => body[field] ?? otherwise;
  const format = objectOf(body["text"]);
  return {
    background: false,
    instructions: asked("instructions", null),
    max_output_tokens: asked("max_output_tokens", null),
    max_tool_calls: asked("max_tool_calls", null),
    parallel_tool_calls: asked("parallel_tool_calls", true),
    previous_response_id: asked("previous_response_id", null),
    prompt_cache_key: asked("prompt_cache_key", null),
    reasoning: { effort: null, summary: null, ...objectOf(body["reasoning"]) },
    safety_identifier: asked("safety_identifier", null),
    temperature: asked("temperature", 1),
    text: { format: { type: "text" }, verbosity: "medium", ...format },
    tool_choice: asked("tool_choice", "auto"),
    tools: toolsOf(body["tools"]),
    top_logprobs: asked("top_logprobs", 0),
    top_p: asked("top_p", 1),
    truncation: asked("truncation", "disabled"),
    ...(body["user"] !== undefined && { user: body["user"] }),
    metadata: asked("metadata", {}),
  };
}

/** The tools that the model was offered, with the fields that OpenAI always has. */
function toolsOf(tools: unknown): readonly JsonObject[] {
  if (!Array.isArray(tools)) return [];
  return tools.filter(isObject).flatMap((tool) => {
    switch (tool["type"]) {
      case "function":
        return [{ description: null, parameters: null, strict: null, ...tool }];
      case "custom":
      case "namespace":
        return [tool];
      default:
        return [];
    }
  });
}

/** What changes while a response is made. */
export interface ResponseState {
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly completedAt?: number | undefined;
  readonly model: string;
  readonly outcome: Outcome | undefined;
  readonly error?: GatewayError | undefined;
  readonly output: readonly object[];
  readonly usage?: TokenUsage | undefined;
  readonly serviceTier: string;
  /** Whether the response can be found by its id. */
  readonly isStored: boolean;
}

/** The fields of OpenAI's `response` object that `echoOf` does not have. */
export function responseFields(state: ResponseState): JsonObject {
  const { id, createdAt, completedAt, model, outcome, error, output, usage, serviceTier } = state;
  const status = outcome?.status ?? (error === undefined ? "in_progress" : "failed");
  return {
    id,
    object: "response",
    created_at: createdAt,
    completed_at: status === "completed" ? (completedAt ?? null) : null,
    status,
    error: error === undefined ? null : responseError(error),
    incomplete_details: outcome?.reason === undefined ? null : { reason: outcome.reason },
    model,
    output,
    service_tier: serviceTier,
    store: state.isStored,
    ...(usage !== undefined && { usage: usageBody(usage) }),
  };
}

/** The codes are a set: `ResponseErrorCode` in OpenAI's OpenAPI document. */
function responseError(error: GatewayError): object {
  const { message } = error.toBody().error;
  if (error.status === 429) return { code: "rate_limit_exceeded", message };
  return { code: error.status < 500 ? "invalid_prompt" : "server_error", message };
}

/** Input includes what was read from and written to the provider's cache. */
function usageBody(usage: TokenUsage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens ?? 0,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

export interface Outcome {
  readonly status: "completed" | "incomplete";
  readonly reason?: "max_output_tokens" | "content_filter";
}

/** `hasRefusal`: the answer says in words that the model declined. */
export function outcomeOf(reason: FinishReason | undefined, hasRefusal: boolean): Outcome {
  switch (reason) {
    case "length":
    case "window_full":
      return { status: "incomplete", reason: "max_output_tokens" };
    case "content_filter":
      return { status: "incomplete", reason: "content_filter" };
    case "refusal":
      return hasRefusal
        ? { status: "completed" }
        : { status: "incomplete", reason: "content_filter" };
    case "stop":
    case "stop_sequence":
    case "tool_calls":
    case "function_call":
    case "pause":
    case undefined:
      return { status: "completed" };
  }
}

/** The service tier that was asked for, until it is known which one serves. */
export function askedTier(body: JsonObject): string {
  return textOf(body["service_tier"]) ?? "default";
}
