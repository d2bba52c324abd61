import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { Attempt } from "./attempt.ts";

/** An attempt whose end was recorded; the loop decides what follows. */
export class FailedAttempt extends Error {
  readonly failure: UpstreamFailure;
  readonly attempt: Attempt;

  constructor(failure: UpstreamFailure, attempt: Attempt) {
    super(failure.message, { cause: failure });
    this.failure = failure;
    this.attempt = attempt;
  }
}

/** Failures that another attempt at the same target would repeat. */
export const unfitKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "unsupported",
  "unknown-model",
  "bad-credential",
  "account-blocked",
]);

/** One that a later call would meet again does not replace one of a target that might serve it. */
export function failureToReport(
  before: UpstreamFailure | undefined,
  now: UpstreamFailure,
): UpstreamFailure {
  if (before === undefined || !unfitKinds.has(now.details.kind)) return now;
  return now.details.kind === "unsupported" || !unfitKinds.has(before.details.kind) ? before : now;
}

export function atLimit(): UpstreamFailure {
  return new UpstreamFailure({ kind: "overloaded", message: "every target is at its limit" });
}

/** The model has no target, or only targets reserved for provisioned calls. */
export function noTarget({ alias }: Pick<Model, "alias">): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      `The model \`${alias}\` serves only calls within provisioned throughput, and this one is not. ` +
      "Please ask the operator.",
    headers: { "x-should-retry": "false" },
    explanation: {
      rule: "pool_busy",
      summary:
        "Every target of the model is in a dedicated pool, and the call has no guarantee there.",
      model: alias,
    },
  });
}

/** Whether the other of two attempts would fail the same way. */
export function isFinal(error: unknown, other: Attempt): boolean {
  if (!(error instanceof FailedAttempt)) return true;
  const { kind } = error.failure.details;
  if (kind !== "context-overflow") return lastingKinds.has(kind);
  return other.candidate.model.contextWindow <= error.attempt.candidate.model.contextWindow;
}

/** Failures caused by the request itself, which every target would report. */
const lastingKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "invalid-request",
  "content-refused",
  "answer-too-large",
]);
