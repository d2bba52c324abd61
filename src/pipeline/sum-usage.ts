import type { TokenUsage } from "../domain/usage.ts";

/** A sum only when every part was reported: a partial sum would look like the whole. */
export function sumUsage(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  const sum = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
  for (const usage of parts) {
    if (usage === undefined) return undefined;
    sum.inputTokens += usage.inputTokens;
    sum.outputTokens += usage.outputTokens;
    sum.cachedInputTokens += usage.cachedInputTokens;
    sum.reasoningTokens += usage.reasoningTokens;
  }
  return parts.length === 0 ? undefined : sum;
}
