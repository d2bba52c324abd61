import type {
  ChatChoice,
  ChatResult,
  GuardrailOutcome,
  ReasoningBlock,
  ResultToolCall,
  TokenDetails,
} from "../../domain/chat/answer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";

export interface ChatBodyOptions {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The alias the caller asked for. */
  readonly model: string;
  readonly usage: TokenUsage;
}

/** OpenAI's `chat.completion` object, fields in its order. */
export function chatBody(result: ChatResult, options: ChatBodyOptions): object {
  return {
    id: options.id,
    object: "chat.completion",
    created: options.created,
    model: options.model,
    choices: result.choices.map(choiceBody),
    usage: usageBody(options.usage, result.tokenDetails),
    ...(result.serviceTier !== undefined && { service_tier: result.serviceTier }),
    ...(result.systemFingerprint !== undefined && { system_fingerprint: result.systemFingerprint }),
    ...result.extra,
  };
}

function choiceBody(choice: ChatChoice): object {
  return {
    index: choice.index,
    message: messageBody(choice),
    logprobs: logprobsBody(choice),
    finish_reason: choice.finishReason,
    ...(choice.guardrail !== undefined && {
      content_filter_results: contentFilterResults(choice.guardrail),
    }),
    ...choice.extra?.choice,
  };
}

/** Azure OpenAI's field for results of filters. OpenAI has none: it is there after one acted. */
export function contentFilterResults({ action }: GuardrailOutcome): object {
  return { guardrail: { filtered: true, ...(action !== undefined && { action }) } };
}

function logprobsBody({ logprobs, refusalLogprobs }: ChatChoice): object | null {
  if (logprobs === undefined && refusalLogprobs === undefined) return null;
  return { content: logprobs ?? null, refusal: refusalLogprobs ?? null };
}

function messageBody(choice: ChatChoice): object {
  const { toolCalls, functionCall, reasoning, reasoningBlocks = [] } = choice;
  const calls = toolCalls.length > 0 || functionCall !== undefined;
  // Null means that the model calls or refuses instead; a text answer has text, even if empty.
  const content = choice.content ?? (calls || choice.refusal !== undefined ? null : "");
  return {
    role: "assistant",
    content: calls && content === "" ? null : content,
    refusal: choice.refusal ?? null,
    annotations: [],
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(reasoningBlocks.length > 0 && {
      reasoning_details: reasoningBlocks.map(reasoningDetail),
    }),
    // Left out when empty: callers send it back, and OpenAI refuses an empty list.
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(toolCallBody) }),
    ...(functionCall !== undefined && { function_call: functionCall }),
    ...choice.extra?.message,
  };
}

function toolCallBody(call: ResultToolCall): object {
  const { id, kind, name, extra } = call;
  return kind === "custom"
    ? { id, type: kind, custom: { name, input: call.arguments, ...extra?.body }, ...extra?.call }
    : {
        id,
        type: kind,
        function: { name, arguments: call.arguments, ...extra?.body },
        ...extra?.call,
      };
}

/**
 * An entry of `reasoning_details` in OpenRouter's form: a signed text, or redacted data. Callers
 * send entries back unchanged. Reference: OpenRouter's guide to reasoning tokens.
 */
export function reasoningDetail(block: ReasoningBlock, index: number): object {
  const format = "anthropic-claude-v1";
  switch (block.kind) {
    case "signed": {
      const { text, signature } = block;
      return { type: "reasoning.text", text, signature, format, index };
    }
    case "redacted":
      return { type: "reasoning.encrypted", data: block.data, format, index };
  }
}

/**
 * OpenAI's `usage` object of a chat answer. Details are objects, never null: the type says so.
 * `other`: the provider's counts that Sluice does not count, each at most the tokens it is part of.
 */
export function usageBody(usage: TokenUsage, other?: TokenDetails): object {
  const { cacheWriteTokens = 0 } = usage;
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      // OpenRouter's name; OpenAI has no such field, so it is left out when nothing was written.
      ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }),
      audio_tokens: 0,
      ...(other !== undefined && atMost(other.input, usage.inputTokens)),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
      ...(other !== undefined && atMost(other.output, usage.outputTokens)),
    },
  };
}

function atMost(
  counts: Readonly<Record<string, number>>,
  most: number,
): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, Math.min(count, most)]),
  );
}
