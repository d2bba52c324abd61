import { GatewayError } from "../domain/errors/gateway-error.ts";
import { retryHeaders } from "../domain/limits/headers.ts";

export const idempotencyHeader = "Idempotency-Key";

export function keyReused(): GatewayError {
  return new GatewayError("idempotency_key_conflict", {
    message: "This Idempotency-Key was used for another call. Use a new one for each call.",
    param: idempotencyHeader,
  });
}

/** The first call still runs, or too many repeats wait for their answers. */
export function keyInUse(): GatewayError {
  return new GatewayError("idempotency_key_in_use", {
    message:
      "A call with this Idempotency-Key still runs. Repeat it later to get the answer of that call.",
    param: idempotencyHeader,
    headers: { ...retryHeaders(1_000), "x-should-retry": "true" },
  });
}

export function answerNotKept(): GatewayError {
  return new GatewayError("answer_not_kept", {
    message:
      "The call with this Idempotency-Key was made, but its answer is too large to be replayed. " +
      "With a new Idempotency-Key, the call is made and billed again.",
    param: idempotencyHeader,
  });
}

/** Refused, because running the call might run, and bill, it twice. */
export function answersUnavailable(cause?: unknown): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The gateway cannot tell at the moment whether a call with this Idempotency-Key was made. " +
      "Please retry with exponential backoff.",
    headers: retryHeaders(5_000),
    cause,
  });
}
