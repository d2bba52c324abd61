import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { countOf, objectOf } from "../../shared/json-fields.ts";
import { thoughtTokensIn } from "../thinking/thought-count.ts";

/**
 * The counts of `usage`, and the count of thoughts in the model's own fields that the answer
 * repeats.
 *
 * The service counts reads from and writes to its cache separately from the other input. Undefined
 * when it has no count; if it has only some of the counts, the others are 0.
 */
export function readUsage(value: unknown, modelFields: unknown): TokenUsage | undefined {
  const usage = objectOf(value);
  const uncachedTokens = countOf(usage?.["inputTokens"]);
  const outputTokens = countOf(usage?.["outputTokens"]);
  if (usage === undefined || (uncachedTokens ?? outputTokens) === undefined) return undefined;
  const cachedInputTokens = countOf(usage["cacheReadInputTokens"]) ?? 0;
  const cacheWriteTokens = countOf(usage["cacheWriteInputTokens"]) ?? 0;
  return {
    inputTokens: (uncachedTokens ?? 0) + cachedInputTokens + cacheWriteTokens,
    outputTokens: outputTokens ?? 0,
    cachedInputTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    reasoningTokens: Math.min(thoughtTokensIn(modelFields), outputTokens ?? 0),
  };
}
