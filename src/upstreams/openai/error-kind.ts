import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";

/** What an error says of itself. */
export interface ErrorFacts {
  /** Undefined for an error in a 2xx answer. */
  readonly status: number | undefined;
  /** Its code, type, status and reasons in lower case. No server writes a caller's words there. */
  readonly codes: ReadonlySet<string>;
  /** As the server wrote it. It may quote the caller. */
  readonly message: string;
  /** The innermost message, where servers wrap that of another. */
  readonly innerMessage: string;
  /** The field at fault, if it is named. */
  readonly param: string | undefined;
}

/**
 * Classifies an error: by its codes, then by its status. A message decides only what concerns its
 * caller alone, or if it is the whole message of a known provider: anything else that a caller
 * makes a server quote could put a target out of service for all.
 */
export function kindOfError(error: ErrorFacts): UpstreamFailureKind {
  const { status, message, innerMessage } = error;
  if (has(error, accountCodes) || saysAccount(error)) return "account-blocked";
  if (isTooLarge(error)) return "unsupported";
  if (status === 429) return kindOfThrottle(error);
  if (has(error, throttleCodes)) return "throttled";
  if (has(error, overloadCodes)) return "overloaded";
  if (has(error, overflowCodes) || overflowTexts.test(innerMessage)) return "context-overflow";
  if (status !== undefined && (status < 400 || status > 499)) return kindByStatus(status);
  if (overflowWords.test(innerMessage)) return "context-overflow";
  if (has(error, contentCodes) || contentWords.test(innerMessage)) return "content-refused";
  if (has(error, credentialCodes)) return "bad-credential";
  if (has(error, modelCodes)) return "unknown-model";
  if (noEndpointText.test(message)) return "unsupported";
  if (status === undefined) return kindByWords(error);
  // What is not found is something else that the request names.
  const isOther = error.param !== undefined && error.param !== "model";
  return status === 404 && isOther ? "invalid-request" : kindByStatus(status);
}

function has({ codes }: ErrorFacts, listed: ReadonlySet<string>): boolean {
  for (const code of codes) if (listed.has(code)) return true;
  return false;
}

function saysAccount({ status, message }: ErrorFacts): boolean {
  return status !== undefined && status >= 400 && status < 500 && accountTexts.test(message);
}

/** A throttle that mentions tokens must never be taken for an exceeded context window. */
function kindOfThrottle(error: ErrorFacts): UpstreamFailureKind {
  const isOverload = has(error, overloadCodes) || overloadText.test(error.message);
  return isOverload ? "overloaded" : "throttled";
}

/** One request is larger than what the account may send in a minute. */
export function isTooLarge({ status, message }: ErrorFacts): boolean {
  return (status === 429 || status === 413) && tooLargeText.test(message);
}

function kindByWords(error: ErrorFacts): UpstreamFailureKind {
  if (has(error, requestCodes)) return "invalid-request";
  // A pause is for the caller's key alone.
  return throttleText.test(error.message) ? "throttled" : "unavailable";
}

function kindByStatus(status: number): UpstreamFailureKind {
  if (operatorStatuses.has(status)) return "bad-credential";
  if (status === 404) return "unknown-model";
  if (status === 408 || status === 504) return "timed-out";
  if (status === 503 || status === 529) return "overloaded";
  return callerStatuses.has(status) ? "invalid-request" : "unavailable";
}

/** These concern the operator's account or access, not the request; 402 and 407 included. */
const operatorStatuses: ReadonlySet<number> = new Set([401, 402, 403, 407]);
/** These concern the request. Servers answer 501 for features that they lack. */
const callerStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422, 501]);

/** OpenAI, resellers' servers, Anthropic, Moonshot, Alibaba, Volcengine, Google. */
const accountCodes: ReadonlySet<string> = new Set([
  "insufficient_quota",
  "billing_not_active",
  "billing_hard_limit_reached",
  "account_deactivated",
  "organization_deactivated",
  "insufficient_user_quota",
  "insufficient_balance",
  "insufficient_credits",
  "billing_error",
  "credit_balance_too_low",
  "exceeded_current_quota_error",
  "arrearage",
  "accountoverdueerror",
  "billing_disabled",
  "consumer_suspended",
]);

/** Whole messages of providers that send no code for it. */
const accountTexts = new RegExp(
  [
    "your credit balance is too low to access the (?:anthropic|claude) api\\." +
      "(?: please go to plans & billing to upgrade or purchase credits\\.)?",
    "you have reached your specified api usage limits\\. you will regain access on [\\d-]+ at [\\d:]+ utc\\.",
    "this organization has been disabled\\.",
    // DeepSeek, OpenRouter, xAI.
    "insufficient balance",
    "insufficient credits\\. add more using https:\\S+",
    "your team [\\w-]+ has either used all available credits or reached its monthly spending limit\\." +
      " to continue making api requests, please purchase more credits or raise your spending limit\\.",
    "your newly created team doesn't have any credits(?: or licenses)? yet\\." +
      " you can purchase those on https:\\S+",
  ]
    .map((text) => `^${text}$`)
    .join("|"),
  "i",
);

const throttleCodes: ReadonlySet<string> = new Set([
  "rate_limit_exceeded",
  "rate_limit_reached",
  "rate_limit_error",
  "rate_limited",
  "too_many_requests",
  "resource_exhausted",
  "throttling",
  "throttled",
]);

const throttleText = /^(?:rate limit (?:reached|exceeded)|too many requests)\b/i;

const overloadCodes: ReadonlySet<string> = new Set([
  "overloaded",
  "overloaded_error",
  "engine_overloaded",
  "engine_overloaded_error",
  "model_overloaded",
  "server_overloaded",
  "server_is_overloaded",
  "service_tier_capacity_exceeded",
  "queue_exceeded",
  "unavailable",
  "unavailable_error",
  "service_unavailable",
  "service_unavailable_error",
  "serviceunavailable",
  "serviceunavailableerror",
]);
const overloadText = /^(?:the engine|that model|this model) is currently overloaded\b/i;

/** OpenAI's words, which Groq sends with 413. */
const tooLargeText = /^request too large for (?:model )?\S+ (?:\(|in organization |on )/i;

const overflowCodes: ReadonlySet<string> = new Set([
  "context_length_exceeded",
  "context_window_exceeded",
  "exceed_context_size_error",
  "model_max_prompt_tokens_exceeded",
]);

const count = "[\\d,._]+";
/** Whole sentences, which servers also send with a 500. */
const overflowTexts = new RegExp(
  [
    // Google.
    `input token count \\(?(?:of )?${count}\\)? exceeds the maximum number of (?:input )?tokens allowed`,
    `input token count is ${count} but model only supports up to ${count}`,
    // Ollama, LM Studio, SGLang.
    "input length exceeds (?:the )?(?:maximum )?context length",
    "number of tokens to keep from the initial prompt is greater than the context length",
    `input (?:length )?\\(${count} tokens\\) (?:is longer than the model's context length|exceeds the maximum allowed length)`,
    // llama.cpp.
    "the request exceeds the available context size",
    "input (?:\\(\\d+ tokens\\) )?is too large to process\\. increase the physical batch size",
  ].join("|"),
  "i",
);

/** They concern only the caller, whatever they quote. */
const overflowWords = new RegExp(
  [
    "maximum (?:context|prompt|model|input) length",
    "max(?:imum)?_?(?:model|input)_?len(?:gth)? of",
    "context (?:window|length|size)",
    "input tokens exceed",
    "(?:prompt|input) is too long",
    "too many (?:input )?tokens in",
    "prompt token count of \\S+ exceeds the limit",
    "number of tokens in the prompt cannot exceed",
    "exceed context limit:",
    "exceeded model token limit",
    "prompt exceeds max length",
    "range of input length should be",
    "inputs` tokens \\+ `max_new_tokens` must be <=",
    "inputs`? must have less than \\d+ tokens",
    "reduce the length of the (?:messages|prompt|input)",
  ].join("|"),
  "i",
);

const contentCodes: ReadonlySet<string> = new Set([
  "content_policy_violation",
  "content_filter",
  "content_filtered",
  "responsibleaipolicyviolation",
  "data_inspection_failed",
  "datainspectionfailed",
  "sensitive_words_detected",
  "moderation_blocked",
  "flagged_input",
]);
const contentWords = /content_policy|content_filter|responsible.?ai|content management policy/i;

/** Google answers 400 for a wrong key. */
const credentialCodes: ReadonlySet<string> = new Set(["api_key_invalid", "invalid_api_key"]);

const modelCodes: ReadonlySet<string> = new Set(["model_not_found", "deploymentnotfound"]);

/** OpenRouter's 404 for a request with images or tools. */
const noEndpointText = /^no endpoints found that support /i;

const requestCodes: ReadonlySet<string> = new Set([
  "invalid_request_error",
  "invalid_request",
  "invalid_argument",
  "badrequesterror",
  "bad_request",
]);
