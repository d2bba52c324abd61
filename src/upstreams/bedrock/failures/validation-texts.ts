import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";

/**
 * `ValidationException` is the name of most refusals; only the text distinguishes them. `message`
 * is without the preamble that the provider puts before a model's own message.
 */
export function kindOfValidation(message: string): UpstreamFailureKind {
  if (targetTexts.test(message)) return "unknown-model";
  if (saysUnpaid(message)) return "account-blocked";
  if (accountTexts.test(message)) return "bad-credential";
  if (saysOverflow(message)) return "context-overflow";
  if (capTexts.test(message)) return "unsupported";
  return contentTexts.test(message) ? "content-refused" : "invalid-request";
}

export function saysOverflow(message: string): boolean {
  return overflowTexts.test(message);
}

/** The account has no means of payment for the model. */
export function saysUnpaid(message: string): boolean {
  return /^model access is denied due to INVALID_PAYMENT_INSTRUMENT\b/i.test(message);
}

// What concerns the operator is matched only at the beginning, because the rest of a message may
// quote a caller.

/**
 * The identifier and the guardrail are parts of the target as the operator wrote it. The apostrophe
 * of "isn’t" is a curly one.
 */
const targetTexts = anyOf(
  "^(?:the provided )?model identifier is invalid\\b",
  "^invocation of model id \\S+ with on-demand throughput isn.t supported\\b",
  "^the provided model doesn.t support on-demand throughput\\b",
  "^th(?:e|is) model(?: version)? has reached the end of its life\\b",
  "^(?:access denied\\. )?this model is marked by provider as legacy\\b",
  "^the (?:provided )?guardrail ?(?:identifier|version)\\b",
  "^\\d+ validation errors? detected: value '[^']*' at '(?:modelid|guardrailconfig\\.\\w+)' failed to satisfy\\b",
);

/**
 * What the operator's account may not do, although the request is valid. All are from reports; the
 * provider documents none of them as a validation error.
 */
const accountTexts = anyOf(
  "^operation not allowed\\b",
  "^(?:your|this|the) (?:aws )?account\\b",
  "^(?:the )?(?:user|role): \\S+ is not authorized to perform\\b",
  "^you(?: are|.re) not authorized\\b",
  "^you don.t have access to the model\\b",
  "^access denied\\b",
  "^access to \\S+(?: \\S+)? is not (?:available|allowed)\\b",
  "^model access is denied\\b",
  "^model use case details have not been submitted\\b",
  "^data retention mode '\\w+' is not available for this model\\b",
);

/** Counts may have separators between their thousands. */
const count = "\\d[\\d,.]*";
const overflowTexts = anyOf(
  // Claude.
  "\\binput is too long\\b",
  `prompt is too long: ${count} tokens > ${count} maximum`,
  "input length and `max_tokens` exceed context limit",
  "too many total text bytes",
  // Llama.
  `maximum context length is ${count} tokens`,
  // Nova.
  "number of input tokens exceeds maximum length",
  // Mistral.
  `prompt contains ${count} tokens\\b.*\\btoo large for model with ${count} maximum context length`,
  // Titan and Cohere.
  "too many input tokens\\. max input tokens",
  `expected maxLength: ${count}, actual`,
  // OpenAI's open models.
  `prompt tokens \\(${count}\\) exceed model maximum \\(${count}\\)`,
);

/** The caller's cap is too large for this model; another target's model may accept it. */
const capTexts = /maximum tokens you requested exceeds the model limit of/i;

const contentTexts =
  /content filter(?:s|ing)?\b|content polic(?:y|ies)|content moderation|responsible ai/i;

function anyOf(...patterns: readonly string[]): RegExp {
  return new RegExp(patterns.join("|"), "i");
}
