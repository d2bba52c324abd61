import type {
  AnswerReasoning,
  AnswerToolCall,
  ChatChoice,
  ChatResult,
  FinishReason,
  GuardrailOutcome,
  TokenDetails,
} from "../../domain/chat/answer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { AnswerOptions } from "../stream-writer.ts";

/** OpenAI's `chat.completion` object, fields in its order. */
export function writeCompletion(
  result: ChatResult,
  { id, created, model, usage }: AnswerOptions & { readonly usage: TokenUsage },
): object {
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: result.choices.map(choiceBody),
    usage: writeUsage(usage, result.tokenDetails),
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
    finish_reason: finishWord(choice.finishReason),
    ...(choice.guardrail !== undefined && {
      content_filter_results: contentFilterResults(choice.guardrail),
    }),
    ...choice.extra?.choice,
  };
}

/** OpenAI's word for the end of an answer; other wires tell more. */
export function finishWord(reason: FinishReason): string {
  return finishWords[reason] ?? reason;
}

const finishWords: Readonly<Partial<Record<FinishReason, string>>> = {
  stop_sequence: "stop",
  pause: "stop",
  window_full: "length",
  refusal: "content_filter",
};

/** Azure OpenAI's field for results of filters. OpenAI has none: it is there after one acted. */
export function contentFilterResults({ action }: GuardrailOutcome): object {
  return { guardrail: { filtered: true, ...(action !== undefined && { action }) } };
}

function logprobsBody({ logprobs, refusalLogprobs }: ChatChoice): object | null {
  if (logprobs === undefined && refusalLogprobs === undefined) return null;
  return { content: logprobs ?? null, refusal: refusalLogprobs ?? null };
}

function messageBody({ blocks, extra }: ChatChoice): object {
  let text: string | undefined;
  let refusal: string | undefined;
  let reasoning: string | undefined;
  const details: object[] = [];
  const calls: object[] = [];
  let functionCall: object | undefined;
  for (const block of blocks) {
    switch (block.type) {
      case "text":
        text = (text ?? "") + block.text;
        break;
      case "refusal":
        refusal = (refusal ?? "") + block.text;
        break;
      case "reasoning": {
        // A thought may have nothing but its signature.
        if (block.text !== "" || block.opaque === undefined) {
          reasoning = (reasoning ?? "") + block.text;
        }
        const detail = reasoningDetail(block, details.length);
        if (detail !== undefined) details.push(detail);
        break;
      }
      case "tool-call":
        if (block.id !== undefined) calls.push(toolCallBody(block));
        else functionCall = { name: block.name, arguments: block.arguments };
    }
  }
  const isCall = calls.length > 0 || functionCall !== undefined;
  // Null means that the model calls or refuses instead; a text answer has text, even if empty.
  const content = text ?? (isCall || refusal !== undefined ? null : "");
  return {
    role: "assistant",
    content: isCall && content === "" ? null : content,
    refusal: refusal ?? null,
    annotations: [],
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    // Left out when empty: callers send it back, and OpenAI refuses an empty list.
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(functionCall !== undefined && { function_call: functionCall }),
    ...extra?.message,
  };
}

function toolCallBody(call: AnswerToolCall): object {
  const { id, kind, name, extra } = call;
  const content = kind === "custom" ? "input" : "arguments";
  const body = { name, [content]: call.arguments, ...extra?.body };
  return { id, type: kind, [kind]: body, ...extra?.call };
}

/**
 * An entry of `reasoning_details` in OpenRouter's form: a signed text, or redacted data; undefined
 * for a thought that nobody expects back. `index` counts the choice's entries. Callers send entries
 * back unchanged. Reference: OpenRouter's guide to reasoning tokens.
 */
export function reasoningDetail(
  { text, opaque, isRedacted }: AnswerReasoning,
  index: number,
): object | undefined {
  if (opaque === undefined) return undefined;
  const format = "anthropic-claude-v1";
  return isRedacted === true
    ? { type: "reasoning.encrypted", data: opaque, format, index }
    : { type: "reasoning.text", text, signature: opaque, format, index };
}

/**
 * OpenAI's `usage` object of a chat answer. Details are objects, never null: the type says so.
 * `other`: the provider's counts that Sluice does not count, each at most the tokens it is part of.
 */
export function writeUsage(usage: TokenUsage, other?: TokenDetails): object {
  const { cacheWriteTokens = 0 } = usage;
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    ...(usage.costUsd !== undefined && { cost_usd: usage.costUsd }),
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
