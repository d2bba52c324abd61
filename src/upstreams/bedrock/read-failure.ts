import type { Clock } from "../../domain/clock.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import {
  type UpstreamFailureKind,
  upstreamFailureKinds,
} from "../../domain/errors/failure-kind.ts";
import exceptionNames from "./exceptions.json" with { type: "json" };
import type { AnswerHeaders, FailedAnswer } from "../adapter.ts";
import {
  type JsonObject,
  nonEmpty,
  numberOf,
  objectOf,
  parseObject,
} from "../shared/json-fields.ts";
import { cleanCode, cleanMessage, readRetryAfter } from "../shared/failure-reply.ts";

export const requestIdHeader = "x-amzn-requestid";

/** Classifies a non-2xx answer of the service, or of a front end before it. */
export function createReadFailure(clock: Clock): (answer: FailedAnswer) => UpstreamFailureDetails {
  return ({ status, headers, body }) => {
    // A body that is not a JSON object (a proxy's page, an empty one) has no useful message.
    const error = parseObject(body) ?? {};
    const details = failureOfException({ name: readName(headers, error), body: error, status });
    const retryAfterMs = readRetryAfter(headers, clock.now()) ?? details.retryAfterMs;
    return { ...details, retryAfterMs };
  };
}

/** The failure in a 2xx answer without the expected field; undefined when it has none. */
export function failureInAnswer(
  body: JsonObject,
  headers?: AnswerHeaders,
): UpstreamFailure | undefined {
  const name = readName(headers, body);
  const hasWords = nonEmpty(body["message"]) ?? nonEmpty(body["Message"]);
  if (name === undefined && hasWords === undefined) return undefined;
  return new UpstreamFailure(failureOfException({ name, body }));
}

/** `ValidationException:http://...` in the header, else `com.amazon.coral#ValidationException`. */
function readName(headers: AnswerHeaders | undefined, error: JsonObject): string | undefined {
  const unrouted = objectOf(error["Output"]);
  const name =
    nonEmpty(headers?.get("x-amzn-errortype")) ??
    nonEmpty(error["__type"]) ??
    nonEmpty(error["code"]) ??
    nonEmpty(unrouted?.["__type"]);
  return nonEmpty(name?.split(":")[0]?.split("#").at(-1)?.trim());
}

/** The service's error, before or within an answer. */
interface ServiceException {
  /** `ThrottlingException`, `throttlingException`; undefined when nothing names it. */
  readonly name: string | undefined;
  readonly body: JsonObject;
  /** Undefined inside a stream. */
  readonly status?: number | undefined;
}

/**
 * Classifies an exception: by its name where it is known, else by the status, and by its message
 * only where one name or status has several meanings.
 */
export function failureOfException({
  name,
  body,
  status,
}: ServiceException): UpstreamFailureDetails {
  const text = nonEmpty(body["message"]) ?? nonEmpty(body["Message"]);
  const message = text === undefined ? undefined : withoutPreamble(text);
  const shortName = name?.toLowerCase().replace(/(?:exception|error)$/, "");
  const exception = { shortName, status, message: message ?? "", body };
  const kind = kindByName(exception) ?? kindByStatus(exception);
  return {
    kind,
    message: cleanMessage(message ?? wordless(name, status)),
    status,
    code: cleanCode(name),
    hint: hintFor(kind, exception),
    retryAfterMs: shortName === "modelnotready" ? modelNotReadyMs : undefined,
  };
}

/** A model that is being loaded is retried in about a second, as the provider's SDKs do. */
const modelNotReadyMs = 1_000;

interface ReadException {
  /** In lower case, without `exception`. */
  readonly shortName: string | undefined;
  readonly status: number | undefined;
  readonly message: string;
  readonly body: JsonObject;
}

function kindByName({ shortName, message, body }: ReadException): UpstreamFailureKind | undefined {
  switch (shortName) {
    case undefined:
      return undefined;
    case "validation":
      return kindOfValidation(message);
    case "modelerror":
    case "modelstreamerror":
      if (numberOf(body["originalStatusCode"]) === 429) return "throttled";
      return overflowTexts.test(message) ? "context-overflow" : "unavailable";
    case "accessdenied":
      return saysUnpaid(message) ? "account-blocked" : "bad-credential";
    default:
      return upstreamFailureKinds.find((kind) => exceptions[kind]?.includes(shortName));
  }
}

/**
 * The service's own exceptions, and those that all services of the provider share. Some credentials
 * that count as stale are wrong: loading them again shows which it is.
 */
const exceptions: Readonly<Partial<Record<UpstreamFailureKind, readonly string[]>>> =
  exceptionNames;

/** For answers without a name or with a new one: from proxies and parts of the front end. */
function kindByStatus({ shortName, status, message }: ReadException): UpstreamFailureKind {
  switch (status) {
    case 400:
      return shortName === undefined ? kindOfValidation(message) : "invalid-request";
    case 401:
    case 403:
      return expiredTexts.test(message) ? "stale-credential" : "bad-credential";
    case 404:
      return "unknown-model";
    case 408:
    case 504:
      return "timed-out";
    case 413:
      return "invalid-request";
    case 429:
      return "throttled";
    case 503:
      return "overloaded";
    case undefined:
      return throttleTexts.test(message) ? "throttled" : "unavailable";
    default:
      return "unavailable";
  }
}

const expiredTexts =
  /^(?:the )?(?:provided |security |bearer )*(?:token|signature|request)\b.{0,60}\bexpired\b/i;

/** For answers that have neither name nor status. */
const throttleTexts = /^(?:too many (?:requests|tokens)|rate limit|throttl)/i;

function withoutPreamble(message: string): string {
  return message.replace(/^The model returned the following errors: /i, "");
}

function wordless(name: string | undefined, status: number | undefined): string {
  const answer = name ?? (status === undefined ? "an error" : `status ${status}`);
  return `the model's upstream answered ${cleanMessage(answer)} and gave no reason`;
}

/**
 * `ValidationException` is the name of most refusals; only the text distinguishes them. `message`
 * is without the preamble that the provider puts before a model's own message.
 */
function kindOfValidation(message: string): UpstreamFailureKind {
  if (targetTexts.test(message)) return "unknown-model";
  if (saysUnpaid(message)) return "account-blocked";
  if (accountTexts.test(message)) return "bad-credential";
  if (overflowTexts.test(message)) return "context-overflow";
  if (capTexts.test(message)) return "unsupported";
  return contentTexts.test(message) ? "content-refused" : "invalid-request";
}

/** The account has no means of payment for the model. */
function saysUnpaid(message: string): boolean {
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

/** What an operator has to change, if the provider's exception and message show it; for the log. */
function hintFor(
  kind: UpstreamFailureKind,
  { shortName, message }: { readonly shortName: string | undefined; readonly message: string },
): string | undefined {
  switch (kind) {
    case "unknown-model":
      return modelHints.find(([text]) => text.test(message))?.[1] ?? usualModelHint;
    case "bad-credential":
    case "account-blocked":
      return accessHints.find(([text]) => text.test(message))?.[1] ?? usualAccessHint(shortName);
    case "stale-credential":
      return credentialHint;
    default:
      return undefined;
  }
}

const formHint = "fill out the form of use cases for the model in the provider's console";
const modelHints: readonly (readonly [RegExp, string])[] = [
  [
    /on-demand throughput/i,
    "the model is reached through an inference profile only: put us., eu., apac. or global. " +
      "before the target's identifier, or use a profile's ARN",
  ],
  [/end of its life|marked by provider as Legacy/i, "the model is retired: choose a newer one"],
  [/use case details/i, formHint],
  [/guardrail/i, "check identifier, version and region of the target's guardrail"],
];
const usualModelHint =
  "check the target's identifier, its region and that the model is offered there";
const accessHints: readonly (readonly [RegExp, string])[] = [
  [
    /aws-marketplace|marketplace subscription/i,
    "the account has no subscription to the model: let an administrator open access to it in the " +
      "provider's console once, or allow aws-marketplace:Subscribe and ViewSubscriptions",
  ],
  [/payment.instrument/i, "the account has no valid means of payment for the model"],
  [/use case details/i, formHint],
  [
    /channel program|unsupported countries/i,
    "the provider does not offer the model to this account: choose another model or account",
  ],
  [/data retention/i, "the model asks for another data retention mode than the account's"],
  [
    /operation not allowed|\baccount\b/i,
    "the account may not call the model in this region: request access to it there; where that is " +
      "granted, ask the provider's support, since the account itself may be held back",
  ],
];

/** Only callers whose signature was accepted get `ValidationException`. */
function usualAccessHint(shortName: string | undefined): string {
  return shortName === "accessdenied" || shortName === "validation" ? accessHint : credentialHint;
}

const accessHint =
  "request access to the model in the provider's console, or allow bedrock:InvokeModel and " +
  "bedrock:InvokeModelWithResponseStream on it and on its inference profile";
const credentialHint =
  "the credential is wrong, expired or of another account, or the clock is off by minutes";
