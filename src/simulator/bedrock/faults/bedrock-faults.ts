import { isOnWire, type Fault, type FaultMode } from "../../faults/fault-mode.ts";
import { oddReply } from "../../faults/odd-replies.ts";
import { BedrockError, errorReply, invalid } from "../bedrock-error.ts";
import {
  exceptions,
  novaOverflow,
  tooManyRequests,
  unable,
  unexpected,
  type Refusal,
} from "../exceptions.ts";

/** The answer of the faults that refuse a call outright; undefined for the others. */
export function bedrockRefusal(fault: Fault, model: string): Refusal | undefined {
  const { mode, argument } = fault;
  if (!isOnWire(mode, "bedrock")) return invalid(`The fault ${mode} exists on OpenAI's wire only.`);
  return allRefusals[mode]?.(model, argument) ?? oddReply(fault);
}

type RefusalMaker = (model: string, argument: number | undefined) => Refusal;

/** What the faults of every wire are on this one. */
const refusals: Readonly<Partial<Record<FaultMode, RefusalMaker>>> = {
  "throttle-429": (_model, waitMs = 2000) => throttledFor(waitMs),
  "throttle-429-bare": () => throttled(),
  "error-500": () => serverError(),
  "overloaded-503": () => new BedrockError("ServiceUnavailableException", unable),
  "error-200": () => ({ ...errorReply(serverError()), status: 200 }),
  "context-overflow": (_model, which = 0) => invalid(overflowTexts[which] ?? overflowTexts[0]),
  "bad-credential": () =>
    new BedrockError(
      "UnrecognizedClientException",
      "The security token included in the request is invalid.",
    ),
  "model-not-found-404": () =>
    new BedrockError(
      "ResourceNotFoundException",
      "Could not resolve the foundation model from the provided model identifier.",
    ),
  "bad-request-400": () =>
    invalid(
      "1 validation error detected: Value '200.0' at 'inferenceConfig.temperature' failed to " +
        "satisfy constraint: Member must have value less than or equal to 1",
    ),
};

const allRefusals: Readonly<Partial<Record<FaultMode, RefusalMaker>>> = {
  ...exceptions,
  ...refusals,
};

/** How the families of models say that a prompt is too long. */
export const overflowTexts = [
  "Input is too long for requested model.",
  "The model returned the following errors: prompt is too long: 208310 tokens > 200000 maximum",
  "The model returned the following errors: input length and `max_tokens` exceed context limit: " +
    "190021 + 32000 > 200000, decrease input length or `max_tokens` and try again",
  "This model's maximum context length is 131072 tokens. Please reduce the length of the prompt",
  "The model returned the following errors: messages: too many total text bytes: 9437184 > 9000000",
  "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9120",
  "Malformed input request: expected maxLength: 50000, actual: 61234, " +
    "please reformat your input and try again.",
  novaOverflow,
  "Prompt contains 40961 tokens, too large for model with 32768 maximum context length",
  "The model returned the following errors: prompt is too long: 208,310 tokens > 200,000 maximum",
  "Input is too long.",
] as const;

function serverError(): BedrockError {
  return new BedrockError("InternalServerException", unexpected);
}

function throttled(): BedrockError {
  return new BedrockError("ThrottlingException", tooManyRequests);
}

function throttledFor(waitMs: number): Refusal {
  const reply = errorReply(throttled());
  const seconds = String(Math.max(1, Math.ceil(waitMs / 1000)));
  return { ...reply, headers: { ...reply.headers, "retry-after": seconds } };
}
