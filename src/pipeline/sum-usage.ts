import type { TokenUsage } from "../domain/usage.ts";

/** A sum only when every part was counted: a partial sum would look like the whole. */
export function sumUsage(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  const isWhole = parts.every((usage) => usage !== undefined && usage.inputTokens > 0);
  return isWhole ? sumReported(parts) : undefined;
}

/** The sum of those parts that were reported; undefined when none was. */
export function sumReported(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  let sum: TokenUsage | undefined;
  for (const usage of parts) {
    if (usage === undefined) continue;
    sum = {
      inputTokens: usage.inputTokens + (sum?.inputTokens ?? 0),
      outputTokens: usage.outputTokens + (sum?.outputTokens ?? 0),
      cachedInputTokens: usage.cachedInputTokens + (sum?.cachedInputTokens ?? 0),
      reasoningTokens: usage.reasoningTokens + (sum?.reasoningTokens ?? 0),
    };
  }
  return sum;
}

/** Of two reports on the same work, the larger count of each kind: counts only grow. */
export function largest(
  one: TokenUsage | undefined,
  other: TokenUsage | undefined,
): TokenUsage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    inputTokens: Math.max(one.inputTokens, other.inputTokens),
    outputTokens: Math.max(one.outputTokens, other.outputTokens),
    cachedInputTokens: Math.max(one.cachedInputTokens, other.cachedInputTokens),
    reasoningTokens: Math.max(one.reasoningTokens, other.reasoningTokens),
  };
}
