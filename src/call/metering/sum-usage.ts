import type { TokenUsage } from "../../domain/usage/usage.ts";

/** Undefined unless every part was reported: a partial sum would look complete. */
export function sumUsage(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  const isWhole = parts.every((usage) => usage !== undefined && usage.inputTokens > 0);
  return isWhole ? sumReported(parts) : undefined;
}

/** The sum of the reported parts; undefined if there are none. */
export function sumReported(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  let sum: TokenUsage | undefined;
  for (const usage of parts) {
    if (usage === undefined || sum === undefined) {
      sum ??= usage;
      continue;
    }
    sum = {
      inputTokens: usage.inputTokens + sum.inputTokens,
      outputTokens: usage.outputTokens + sum.outputTokens,
      cachedInputTokens: usage.cachedInputTokens + sum.cachedInputTokens,
      cacheWriteTokens: added(usage.cacheWriteTokens, sum.cacheWriteTokens),
      reasoningTokens: usage.reasoningTokens + sum.reasoningTokens,
      isBounded: usage.isBounded ?? sum.isBounded,
    };
  }
  return sum;
}

/** The larger of two reports for each count: counts only grow. */
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
    isBounded: one.isBounded ?? other.isBounded,
  };
}

/** For counts that most upstreams do not report. */
function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one + other;
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}
