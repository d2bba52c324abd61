import type { ChatResult, FinishReason } from "../../domain/chat/answer.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { type JsonObject, objectOf } from "../../domain/json-fields.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { objectsIn } from "../fields.ts";
import type { AnswerOptions } from "../stream-writer.ts";
import { type ItemOptions, outputItems } from "./output-items.ts";

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
  return objectsIn(tools).flatMap((tool) => {
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

export interface ResponseOptions extends AnswerOptions, ItemOptions {
  /** The service tier that was asked for, until it is known which one serves. */
  readonly askedTier: string;
  /** The fields that repeat the request. */
  readonly echo: JsonObject;
  /** Undefined: the response is not stored. */
  readonly store: ResponseStore | undefined;
}

/** Where a response is kept for later requests. */
export interface ResponseStore {
  /** Whether it was stored in time. Never rejects. */
  keep(response: JsonObject): Promise<boolean>;
  /** There is nothing to keep. */
  release(): void;
}

/** What changes while a response is made. */
export interface ResponseState {
  /** Undefined: it goes on, or has failed. */
  readonly outcome?: Outcome;
  readonly completedAt?: number;
  readonly error?: GatewayError;
  readonly output: readonly object[];
  readonly usage?: TokenUsage;
  readonly serviceTier: string | undefined;
  /** Undefined: it will be, if there is a store. */
  readonly isStored?: boolean;
}

/** The `response` object of a whole answer. */
export function writeResponse(
  { choices: [choice], serviceTier }: ChatResult,
  options: ResponseOptions & { readonly usage: TokenUsage },
): JsonObject {
  const hasRefusal = choice?.blocks.some(({ type }) => type === "refusal") === true;
  const outcome = outcomeOf(choice?.finishReason, hasRefusal);
  const output = choice === undefined ? [] : outputItems(choice, outcome.status, options);
  const { created: completedAt, usage } = options;
  const state = { outcome, completedAt, output, usage, serviceTier };
  return { ...responseFields(options, state), ...options.echo };
}

/** The fields of OpenAI's `response` object that `echo` does not have. */
export function responseFields(options: ResponseOptions, state: ResponseState): JsonObject {
  const { outcome, completedAt, error, output, usage, serviceTier } = state;
  const status = outcome?.status ?? (error === undefined ? "in_progress" : "failed");
  return {
    id: options.id,
    object: "response",
    created_at: options.created,
    completed_at: status === "completed" ? (completedAt ?? null) : null,
    status,
    error: error === undefined ? null : responseError(error),
    incomplete_details: outcome?.reason === undefined ? null : { reason: outcome.reason },
    model: options.model,
    output,
    service_tier: serviceTier ?? options.askedTier,
    store: state.isStored ?? options.store !== undefined,
    ...(usage !== undefined && { usage: writeUsage(usage) }),
  };
}

/** The codes are a set: `ResponseErrorCode` in OpenAI's OpenAPI document. */
function responseError(error: GatewayError): object {
  const { message } = error.toBody().error;
  if (error.status === 429) return { code: "rate_limit_exceeded", message };
  return { code: error.status < 500 ? "invalid_prompt" : "server_error", message };
}

/** Input includes what was read from and written to the provider's cache. */
function writeUsage(usage: TokenUsage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens ?? 0,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
    ...(usage.costUsd !== undefined && { cost_usd: usage.costUsd }),
  };
}

export interface Outcome {
  readonly status: "completed" | "incomplete";
  readonly reason?: "max_output_tokens" | "content_filter";
}

/** `hasRefusal`: the answer says in words that the model declined. */
export function outcomeOf(reason: FinishReason | undefined, hasRefusal: boolean): Outcome {
  const isWhole = reason === undefined || (reason === "refusal" && hasRefusal);
  const cause = isWhole ? undefined : earlyEnds[reason];
  return cause === undefined ? { status: "completed" } : { status: "incomplete", reason: cause };
}

const earlyEnds: Readonly<Partial<Record<FinishReason, Outcome["reason"]>>> = {
  length: "max_output_tokens",
  window_full: "max_output_tokens",
  content_filter: "content_filter",
  refusal: "content_filter",
};
