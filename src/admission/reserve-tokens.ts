import type { Call } from "../snapshot/call.ts";
import type { OutputExpectation, TokenEstimate } from "./estimate/estimate.ts";
import type { Model } from "../domain/model.ts";

/** The tokens that a call reserves under a limit. */
export interface TokenReservation {
  readonly tokens: number;
  /** The most that it can use; more than `tokens` only if a guess is reserved. */
  readonly mostTokens: number;
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
  uncapped: "debt",
  overrunFactor: 3,
  whenLimitsUnavailable: "local",
} as const;

/** How the plan of a key treats calls that do not cap their output. */
export function uncappedTerms({ caller, snapshot }: Pick<Call, "caller" | "snapshot">) {
  return snapshot.plans.get(caller.key.plan) ?? usualTerms;
}

/**
 * What a call reserves under a limit. A cap is reserved unchanged. A guess is clamped to what the
 * limit leaves after the input; otherwise a key with a small limit would never get a first answer.
 */
export function reservationUnder(limit: number, request: ReservationRequest): TokenReservation {
  const { estimate, output, call } = request;
  const { inputTokens, outputTokens } = estimate;
  const most = inputTokens + output.choices * mostOutputTokens(request);
  if (output.cap !== undefined) {
    const tokens = inputTokens + outputTokens;
    return { tokens, mostTokens: tokens, outputCap: undefined };
  }
  const guess = Math.min(outputTokens, Math.max(0, limit - inputTokens));
  switch (uncappedTerms(call).uncapped) {
    case "debt":
      return { tokens: inputTokens + guess, mostTokens: most, outputCap: undefined };
    case "cap": {
      const outputCap = Math.max(1, Math.floor(guess / output.choices));
      const tokens = inputTokens + outputCap * output.choices;
      return { tokens, mostTokens: tokens, outputCap };
    }
    case "maximum":
      return { tokens: most, mostTokens: most, outputCap: undefined };
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
