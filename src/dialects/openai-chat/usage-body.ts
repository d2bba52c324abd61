import type { TokenUsage } from "../../domain/usage/usage.ts";

/** OpenAI's `usage` object of a chat answer. Details are objects, never null: the type says so. */
export function usageBody(usage: TokenUsage): object {
  const { cacheWriteTokens = 0 } = usage;
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      // OpenRouter's name; OpenAI's own object has none, so it is left out where nothing was written.
      ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }),
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
