import type { Clock } from "../../domain/clock.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import {
  type UpstreamFailureKind,
  upstreamFailureKinds,
} from "../../domain/errors/failure-kind.ts";
import refusals from "./refusals.json" with { type: "json" };
import type { AnswerHeaders, FailedAnswer } from "../adapter.ts";
import {
  type JsonObject,
  nonEmpty,
  numberOf,
  objectOf,
  parseObject,
} from "../../domain/json-fields.ts";
import {
  anyOf,
  cleanCode,
  cleanMessage,
  readRetryAfter,
  wordless,
} from "../shared/failure-reply.ts";

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
    message: cleanMessage(message ?? wordless(status, name)),
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
  refusals.exceptions;

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

/** The identifier and the guardrail are parts of the target as the operator wrote it. */
const targetTexts = anyOf(refusals.target);

/**
 * What the operator's account may not do, although the request is valid. All are from reports; the
 * provider documents none of them as a validation error.
 */
const accountTexts = anyOf(refusals.account);
const overflowTexts = anyOf(Object.values(refusals.overflow).flat());
/** The caller's cap is too large for this model; another target's model may accept it. */
const capTexts = anyOf(refusals.cap);
const contentTexts = anyOf(refusals.content);

/** What an operator has to change, if the provider's exception and message show it; for the log. */
function hintFor(
  kind: UpstreamFailureKind,
  { shortName, message }: { readonly shortName: string | undefined; readonly message: string },
): string | undefined {
  switch (kind) {
    case "unknown-model":
      return modelHints.find(([text]) => text.test(message))?.[1];
    case "bad-credential":
    case "account-blocked":
      return accessHints.find(([text]) => text.test(message))?.[1] ?? usualAccessHint(shortName);
    case "stale-credential":
      return credentialHint;
    default:
      return undefined;
  }
}

const modelHints = hintsOf(refusals.hints.model);
const accessHints = hintsOf(refusals.hints.access);

/** Each with the text of the messages that it is for; the first that fits counts. */
function hintsOf(rows: readonly (readonly string[])[]): readonly (readonly [RegExp, string])[] {
  return rows.map(([text = "", hint = ""]) => [anyOf([text]), hint]);
}

/** Only callers whose signature was accepted get `ValidationException`. */
function usualAccessHint(shortName: string | undefined): string {
  return shortName === "accessdenied" || shortName === "validation" ? accessHint : credentialHint;
}

const accessHint =
  "request access to the model in the provider's console, or allow bedrock:InvokeModel and " +
  "bedrock:InvokeModelWithResponseStream on it and on its inference profile";
const credentialHint =
  "the credential is wrong, expired or of another account, or the clock is off by minutes";
