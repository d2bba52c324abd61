import type { TokenUsage } from "../../../domain/usage/usage.ts";

/** Token counts as a provider reports them; undefined: not reported. */
export interface ProviderCounts {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly total: number | undefined;
  /** Input read from a cache, and written to it. */
  readonly cached: number | undefined;
  readonly cacheWrite: number | undefined;
  readonly reasoning: number | undefined;
  readonly serviceTier?: string | undefined;
}

/**
 * The tokens that a provider means. OpenAI includes cached input in the input and reasoning in the
 * output; others count them on top, which shows where a detail exceeds its count or where the total
 * is larger than the two counts. What fits no convention is limited to what is possible and marked.
 * Undefined without a count of input or output.
 *
 * Sources: xAI reports 32 in, 9 out, 94 reasoning, 135 in total; Gemini's OpenAI endpoint 21 in,
 * 0 out, 81 in total.
 */
export function readCounts(counts: ProviderCounts): TokenUsage | undefined {
  if ((counts.input ?? counts.output) === undefined) return undefined;
  const { cached = 0, cacheWrite = 0, reasoning = 0 } = counts;
  const apart = cached + cacheWrite;
  let input = counts.input ?? 0;
  let output = counts.output ?? 0;
  const rest = (counts.total ?? 0) - input - output;
  if (rest > 0) {
    const isInputApart = apart > 0 && (rest === apart || rest === apart + reasoning);
    if (isInputApart) input += apart;
    output += isInputApart ? rest - apart : rest;
  } else if (counts.total === undefined) {
    if (apart > input) input += apart;
    if (reasoning > output) output += reasoning;
  }
  const cachedInputTokens = Math.min(cached, input);
  return {
    inputTokens: input,
    outputTokens: output,
    cachedInputTokens,
    ...(counts.cacheWrite !== undefined && {
      cacheWriteTokens: Math.min(cacheWrite, input - cachedInputTokens),
    }),
    // Only reasoning is counted in a total and in neither of its parts.
    reasoningTokens: Math.min(Math.max(reasoning, output - (counts.output ?? 0)), output),
    ...(counts.serviceTier !== undefined && { serviceTier: counts.serviceTier }),
    ...((apart > input || reasoning > output) && { isBounded: true }),
  };
}
