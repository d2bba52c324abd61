import type { Model, Target } from "../model.ts";
import type { DearestWeights, TokenUsage } from "../usage/usage.ts";

/**
 * What a token counts in the limits of a plan, in hundredths, so that sums are exact. A token of
 * fresh input counts 100.
 */
export interface TokenWeights {
  readonly cachedInput: number;
  readonly cacheWrite: number;
  /** `by-model`: as in the provider's own quota; see `Target.outputQuotaWeight`. */
  readonly output: number | "by-model";
}

/** The weights of one call: those of its plan, and the dearest that may apply to it. */
export interface CallWeights extends DearestWeights {
  readonly plan: TokenWeights;
}

/** One token, in hundredths. */
const whole = 100;
// Far above any model's answer, yet small enough that sums of a window stay exact integers.
export const largestTokenCount = 2 ** 40;

/** Amazon Bedrock's own terms: what is read from its cache is free of its quota. */
export const bedrockWeights: TokenWeights = {
  cachedInput: 0,
  cacheWrite: whole,
  output: "by-model",
};

/** `all`: the model, and those that may serve in its place. */
export function callWeights(plan: TokenWeights, all: readonly Model[]): CallWeights {
  const { cachedInput, cacheWrite, output } = plan;
  const outputs = all.flatMap(({ targets }) => targets.map((target) => outputWeight(plan, target)));
  return {
    plan,
    input: Math.max(whole, cachedInput, cacheWrite),
    output: output === "by-model" ? Math.max(whole, ...outputs) : output,
  };
}

/** The most that so many tokens can count. Undefined weights: each counts one. */
export function dearestTokens(
  weights: DearestWeights | undefined,
  inputTokens: number,
  outputTokens: number,
): number {
  if (weights === undefined) return inputTokens + outputTokens;
  return roundedUp(inputTokens * weights.input + outputTokens * weights.output);
}

/** The output tokens that so much of a limit is enough for. */
export function outputWithin(weights: CallWeights | undefined, tokens: number): number {
  if (weights === undefined) return tokens;
  return weights.output === 0 ? Infinity : Math.floor((tokens * whole) / weights.output);
}

/**
 * What a call has used of its plan: the only place where usage becomes tokens of a limit. `serving`
 * is the target of requests that name none.
 */
export function planTokens(
  weights: CallWeights | undefined,
  usage: TokenUsage,
  serving: Target | undefined,
): number {
  if (weights === undefined) return usage.inputTokens + usage.outputTokens;
  const { plan } = weights;
  let sum = 0;
  for (const request of usage.requests ?? [usage]) {
    const { inputTokens, outputTokens } = request;
    const cached = Math.min(request.cachedInputTokens, inputTokens);
    const written = Math.min(request.cacheWriteTokens ?? 0, inputTokens - cached);
    const fresh = inputTokens - cached - written;
    sum += fresh * whole + cached * plan.cachedInput + written * plan.cacheWrite;
    sum += outputTokens * outputWeight(plan, request.target ?? serving);
  }
  return roundedUp(sum);
}

function outputWeight({ output }: TokenWeights, target: Target | undefined): number {
  return output === "by-model" ? (target?.outputQuotaWeight ?? 1) * whole : output;
}

/** A part of a token counts as one, once for each call. */
function roundedUp(hundredths: number): number {
  return Math.min(Math.ceil(hundredths / whole), largestTokenCount);
}
