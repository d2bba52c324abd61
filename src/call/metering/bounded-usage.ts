import type { Model } from "../../domain/model.ts";
import type { OutputExpectation } from "../../admission/estimate/estimate.ts";
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
  const mostOutput = Math.max(bounds.outputTokens, bounds.reasoningTokens);
  const outputTokens = Math.min(
    usage.outputTokens,
    bounds.outputTokens + reasoningTokens,
    mostOutput,
  );
  const isSame =
    inputTokens === usage.inputTokens &&
    outputTokens === usage.outputTokens &&
    reasoningTokens === usage.reasoningTokens;
  if (isSame) return usage;
  const cachedInputTokens = Math.min(usage.cachedInputTokens, inputTokens);
  const most = inputTokens - cachedInputTokens;
  const { cacheWriteTokens: written, cacheWrite1hTokens: written1h } = usage;
  // A sum that was limited is no longer that of its requests.
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens,
    ...(written !== undefined && { cacheWriteTokens: Math.min(written, most) }),
    ...(written1h !== undefined && { cacheWrite1hTokens: Math.min(written1h, most) }),
    ...(usage.serviceTier !== undefined && { serviceTier: usage.serviceTier }),
    ...(usage.target !== undefined && { target: usage.target }),
    reasoningTokens: Math.min(reasoningTokens, outputTokens),
    isBounded: true,
  };
}

/** What a call may ask of a model. */
interface BoundedCall {
  readonly output: OutputExpectation;
  /** How many inputs, each of at most a context window. */
  readonly inputs: number;
}

export function boundsOf(
  { contextWindow, kind }: Model,
  { output, inputs }: BoundedCall,
  deliveredCharacters: number,
): UsageBounds {
  const windows = contextWindow * inputs;
  if (kind === "embedding") return { inputTokens: windows, outputTokens: 0, reasoningTokens: 0 };
  const cap = output.cap === undefined ? windows : output.cap * output.choices;
  return {
    inputTokens: windows,
    // A server that ignores the cap has delivered more: no character takes several tokens for long.
    outputTokens: Math.max(cap, deliveredCharacters),
    reasoningTokens: windows,
  };
}
