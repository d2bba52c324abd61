import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import { hintFor } from "./operator-hints.ts";
import { cleanCode, cleanMessage } from "../../shared/clean-message.ts";
import { nonEmpty, numberOf, type JsonObject } from "../../shared/json-fields.ts";
import { kindOfValidation, saysOverflow, saysUnpaid } from "./validation-texts.ts";

/** The service's error, before or within an answer. */
export interface ServiceException {
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
      return saysOverflow(message) ? "context-overflow" : "unavailable";
    case "accessdenied":
      return saysUnpaid(message) ? "account-blocked" : "bad-credential";
    default:
      return kindsByName.get(shortName);
  }
}

/** The service's own exceptions, then those that all services of the provider share. */
const kindsByName: ReadonlyMap<string, UpstreamFailureKind> = new Map([
  ["throttling", "throttled"],
  ["servicequotaexceeded", "throttled"],
  ["modelnotready", "overloaded"],
  ["serviceunavailable", "overloaded"],
  ["modeltimeout", "timed-out"],
  ["internalserver", "unavailable"],
  ["resourcenotfound", "unknown-model"],
  ["ftuformnotfilled", "unknown-model"],
  // Mistakes of the gateway itself.
  ["conflict", "unavailable"],
  ["unknownoperation", "unavailable"],
  ["serialization", "unavailable"],
  ["expiredtoken", "stale-credential"],
  ["requestexpired", "stale-credential"],
  ["invalidsignature", "stale-credential"],
  ["signaturedoesnotmatch", "stale-credential"],
  ["requesttimetooskewed", "stale-credential"],
  // Also sent for credentials that were replaced; loading them again shows which it is.
  ["unrecognizedclient", "stale-credential"],
  ["invalidclienttokenid", "stale-credential"],
  ["incompletesignature", "stale-credential"],
  ["missingauthenticationtoken", "bad-credential"],
  ["notauthorized", "bad-credential"],
  ["unauthorized", "bad-credential"],
  ["optinrequired", "bad-credential"],
  ["throttled", "throttled"],
  ["toomanyrequests", "throttled"],
  ["requestlimitexceeded", "throttled"],
  ["limitexceeded", "throttled"],
  ["requesttimeout", "timed-out"],
  ["internalfailure", "unavailable"],
]);

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
