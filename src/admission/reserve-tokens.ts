import {
  type CallWeights,
  callWeights,
  dearestTokens,
  outputWithin,
} from "../domain/limits/token-weights.ts";
import type { Call } from "../snapshot/call.ts";
import type { OutputExpectation, TokenEstimate } from "./estimate/estimate.ts";
import type { Model } from "../domain/model.ts";

/** What a call reserves under a limit, in the tokens of that limit. */
export interface TokenReservation {
  readonly tokens: number;
  /** The most that it can use; more than `tokens` only if a guess is reserved. */
  readonly mostTokens: number;
  /** Without weights, as a provider counts them. */
  readonly outputTokens: number;
  /** The cap of one choice to send upstream; undefined: as the caller sent it. */
  readonly outputCap: number | undefined;
}

export interface ReservationRequest {
  readonly call: Pick<Call, "caller" | "snapshot" | "environment">;
  readonly model: Model;
  readonly estimate: TokenEstimate;
  readonly output: OutputExpectation;
}

const usualTerms = {
  mode: "enforce",
  uncapped: "debt",
  overrunFactor: 3,
  whenLimitsUnavailable: "local",
} as const;

/** How the plan of a key treats its calls, above all those that do not cap their output. */
export function uncappedTerms({ caller, snapshot }: Pick<Call, "caller" | "snapshot">) {
  return snapshot.plans.get(caller.key.plan) ?? usualTerms;
}

/** Undefined: each token counts one under the plan of the key. */
export function planWeights({ call, model }: ReservationRequest): CallWeights | undefined {
  const plan = call.snapshot.plans.get(call.caller.key.plan)?.tokenWeights;
  if (plan === undefined) return undefined;
  const { models } = call.environment;
  const fallbacks = (model.fallbacks ?? []).flatMap((alias) => models.get(alias) ?? []);
  return callWeights(plan, [model, ...fallbacks]);
}

/**
 * What a call reserves under a limit, each token at the dearest weight that may apply. A cap is
 * reserved unchanged. A guess is clamped to what the limit leaves after the input; otherwise a key
 * with a small limit would never get a first answer.
 */
export function reservationUnder(
  limit: number,
  request: ReservationRequest,
  weights: CallWeights | undefined,
): TokenReservation {
  const { estimate, output, call } = request;
  const { inputTokens } = estimate;
  const reserved = (outputTokens: number) => {
    const tokens = dearestTokens(weights, inputTokens, outputTokens);
    return { tokens, mostTokens: tokens, outputTokens, outputCap: undefined };
  };
  if (output.cap !== undefined) return reserved(estimate.outputTokens);
  const left = Math.max(0, limit - dearestTokens(weights, inputTokens, 0));
  const guess = Math.min(estimate.outputTokens, outputWithin(weights, left));
  const most = output.choices * mostOutputTokens(request);
  switch (uncappedTerms(call).uncapped) {
    case "debt":
      return { ...reserved(guess), mostTokens: dearestTokens(weights, inputTokens, most) };
    case "cap": {
      const outputCap = Math.max(1, Math.floor(guess / output.choices));
      const reservation = reserved(outputCap * output.choices);
      // A limit that refuses nothing cuts nothing either.
      return uncappedTerms(call).mode === "audit" ? reservation : { ...reservation, outputCap };
    }
    case "maximum":
      return reserved(most);
  }
}

/** The longest choice of the model or one of its fallbacks, unless a cap is sent. */
function mostOutputTokens({ call, model, output }: ReservationRequest): number {
  if (output.sentCap !== undefined) return output.sentCap;
  let most = model.maxOutputTokens ?? 0;
  for (const alias of model.fallbacks ?? []) {
    most = Math.max(most, call.environment.models.get(alias)?.maxOutputTokens ?? 0);
  }
  return most;
}
