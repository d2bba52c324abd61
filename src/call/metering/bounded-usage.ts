import type { TokenUsage } from "../../domain/usage/usage.ts";

/** The most that a call can have used. */
export interface UsageBounds {
  readonly inputTokens: number;
  /** Without reasoning, which some providers do not hold to the caller's cap. */
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** The same usage, limited to what is possible, and marked if it was more. */
export function boundedUsage(usage: TokenUsage, bounds: UsageBounds): TokenUsage {
  const inputTokens = Math.min(usage.inputTokens, bounds.inputTokens);
  const reasoningTokens = Math.min(usage.reasoningTokens, bounds.reasoningTokens);
  const most = Math.max(bounds.outputTokens, bounds.reasoningTokens);
  const outputTokens = Math.min(usage.outputTokens, bounds.outputTokens + reasoningTokens, most);
  const isSame =
    inputTokens === usage.inputTokens &&
    outputTokens === usage.outputTokens &&
    reasoningTokens === usage.reasoningTokens;
  if (isSame) return usage;
  const cachedInputTokens = Math.min(usage.cachedInputTokens, inputTokens);
  const written = usage.cacheWriteTokens;
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens,
    ...(written !== undefined && {
      cacheWriteTokens: Math.min(written, inputTokens - cachedInputTokens),
    }),
    reasoningTokens: Math.min(reasoningTokens, outputTokens),
    isBounded: true,
  };
}
