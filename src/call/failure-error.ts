import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { UpstreamFailure, UpstreamFailureDetails } from "../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import type { Model } from "../domain/model.ts";
import { retryHeaders } from "../domain/limits/headers.ts";

/** Retry-After when the upstream sent none. */
const defaultRetryAfterMs = 2_000;
/** SDKs sleep as long as the Retry-After says. */
const longestRetryAfterMs = 60_000;

/** Maps a failed attempt to the caller's error. A 429 of the provider is not one of the caller. */
export function failureError(failure: UpstreamFailure, model: Model): GatewayError {
  const { details } = failure;
  switch (details.kind) {
    case "context-overflow":
      return new GatewayError("context_length_exceeded", {
        message: overflowMessage(details.message, model),
        param: details.param ?? (model.kind === "chat" ? "messages" : "input"),
        cause: failure,
      });
    case "invalid-request":
      return new GatewayError("upstream_rejected", {
        message: details.message,
        param: details.param ?? null,
        cause: failure,
      });
    case "unsupported":
      return new GatewayError("unsupported_parameter", {
        message: details.message,
        param: details.param ?? null,
        cause: failure,
      });
    case "content-refused":
      return new GatewayError("content_refused", { message: details.message, cause: failure });
    case "answer-too-large":
      return new GatewayError("answer_too_large", {
        message:
          `The model's answer was too large: ${details.message}. Ask for less, such as fewer ` +
          "tokens, choices or top_logprobs, or stream the answer.",
        cause: failure,
      });
    case "unfit-answer":
      return new GatewayError("answer_mismatch", {
        message:
          `The model's answer does not match response_format: ` +
          `${details.message}. Describe the format in the messages too, or use a simpler one.`,
        param: "response_format",
        // Two attempts have already failed.
        headers: { "x-should-retry": "false" },
        cause: failure,
      });
    case "throttled":
    case "overloaded":
    case "unavailable":
    case "connect-failed":
    case "connection-lost":
    case "timed-out":
    case "broken-answer":
    case "bad-credential":
    case "account-blocked":
    case "stale-credential":
    case "unknown-model":
      return unavailable(failure, details, model);
  }
}

/** Clients recognise an overflow by OpenAI's first sentence. */
function overflowMessage(message: string, model: Model): string {
  const opening = "This model's maximum context length is";
  if (message.includes(opening)) return message;
  return `${opening} ${model.contextWindow} tokens. ${message}`;
}

function unavailable(
  failure: UpstreamFailure,
  details: UpstreamFailureDetails,
  model: Model,
): GatewayError {
  // Faults of the operator last longer than an SDK's retries.
  const isLasting = lastingKinds.has(details.kind);
  const waitMs = Math.min(details.retryAfterMs ?? defaultRetryAfterMs, longestRetryAfterMs);
  const headers = retryHeaders(isLasting ? undefined : waitMs);
  return new GatewayError("model_unavailable", {
    message: isLasting
      ? `The model is unavailable: ${reasons[details.kind]}. Please contact the operator.`
      : `The model is temporarily unavailable: ${reasons[details.kind]}. ` +
        "Please retry with exponential backoff.",
    headers,
    cause: failure,
    // The caller is added where the error is reported.
    explanation: {
      rule: "upstream",
      summary: `No target of the model answered; the last failure: ${reasons[details.kind]}.`,
      model: model.alias,
    },
  });
}

const lastingKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "bad-credential",
  "account-blocked",
  "stale-credential",
  "unknown-model",
]);

/** Specific enough to act on, without details of the operator's accounts. */
const reasons: Readonly<Record<UpstreamFailureDetails["kind"], string>> = {
  throttled: "the provider is limiting requests",
  overloaded: "the provider is overloaded",
  unavailable: "the provider answered with an error",
  "connect-failed": "the provider could not be reached",
  "connection-lost": "the connection to the provider was lost",
  "timed-out": "the provider did not answer in time",
  "broken-answer": "the provider's answer was incomplete or invalid",
  "answer-too-large": "the answer exceeds a limit of the gateway",
  "unfit-answer": "the answer does not match response_format",
  "bad-credential": "the provider refused the gateway's credential",
  "account-blocked": "the provider does not serve the gateway's account",
  "stale-credential": "the provider refused the gateway's credential",
  unsupported: "the provider does not support the request",
  "unknown-model": "the provider does not know the model",
  "context-overflow": "the input is too long",
  "invalid-request": "the provider refused the request",
  "content-refused": "the provider refused the content",
};
