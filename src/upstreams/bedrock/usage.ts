import type { TokenUsage } from "../../domain/usage.ts";
import { countOf, objectOf } from "../shared/json-fields.ts";

/** The service counts what it reads from and writes to its cache apart from the other input. */
export function readUsage(value: unknown): TokenUsage | undefined {
  const usage = objectOf(value);
  const uncachedTokens = countOf(usage?.["inputTokens"]);
  if (usage === undefined || uncachedTokens === undefined) return undefined;
  const cachedInputTokens = countOf(usage["cacheReadInputTokens"]) ?? 0;
  return {
    inputTokens:
      uncachedTokens + cachedInputTokens + (countOf(usage["cacheWriteInputTokens"]) ?? 0),
    outputTokens: countOf(usage["outputTokens"]) ?? 0,
    cachedInputTokens,
    // The service does not say which part of the output was reasoning.
    reasoningTokens: 0,
  };
}
