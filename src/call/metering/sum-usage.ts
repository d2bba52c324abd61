import type { TokenUsage } from "../../domain/usage/usage.ts";

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
      cacheWriteTokens: added(usage.cacheWriteTokens, sum?.cacheWriteTokens),
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
    cacheWriteTokens: larger(one.cacheWriteTokens, other.cacheWriteTokens),
    reasoningTokens: Math.max(one.reasoningTokens, other.reasoningTokens),
  };
}

/** Of counts that most upstreams do not have. */
function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one + other;
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}
