import type { Clock } from "../../../domain/clock.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";
import { type JsonObject, nonEmpty, objectOf, parseObject } from "../../../domain/json-fields.ts";
import type { FailedAnswer } from "../../adapter.ts";
import { anyOf, cleanCode, cleanMessage, readRetryAfter } from "../failure-reply.ts";

/** Classifies non-2xx answers of a Messages API. */
export function createReadMessagesFailure(
  clock: Clock,
): (answer: FailedAnswer) => UpstreamFailureDetails {
  return ({ status, headers, body }) => {
    const value = parseObject(body);
    const details = classifyMessagesError(status, objectOf(value?.["error"]) ?? {});
    return { ...details, status, retryAfterMs: readRetryAfter(headers, clock.now()) };
  };
}

/**
 * `{type, message, details?}`. `status` is undefined for an error within an answer. The type
 * decides, then the status. Source: platform.claude.com, "Errors" and "Rate limits".
 */
export function classifyMessagesError(
  status: number | undefined,
  error: JsonObject,
): UpstreamFailureDetails {
  const message = nonEmpty(error["message"]) ?? wordless(status);
  const kind = kindOf(status, error, message);
  return {
    kind,
    message: cleanMessage(message),
    status,
    code: cleanCode(objectOf(error["details"])?.["error_code"]) ?? cleanCode(error["type"]),
    hint: kind === "account-blocked" ? accountHint : undefined,
  };
}

function kindOf(
  status: number | undefined,
  { type, details }: JsonObject,
  message: string,
): UpstreamFailureKind {
  // The tier's spending limit is a 429 that no waiting helps.
  const isSpent = objectOf(details)?.["error_code"] === "enforced_spend_limit_reached";
  if (isSpent || accountTexts.test(message)) return "account-blocked";
  switch (type) {
    case "rate_limit_error":
      return "throttled";
    case "overloaded_error":
      return "overloaded";
    case "authentication_error":
    case "permission_error":
      return "bad-credential";
    case "billing_error":
      return "account-blocked";
    case "not_found_error":
      return "unknown-model";
    case "timeout_error":
      return "timed-out";
    case "api_error":
    case "conflict_error":
      return "unavailable";
    case "request_too_large":
      return "invalid-request";
    default:
      return kindOfRefusal(status, type === "invalid_request_error", message);
  }
}

/** The API has one type for all that is wrong with a request. */
function kindOfRefusal(
  status: number | undefined,
  isInvalid: boolean,
  message: string,
): UpstreamFailureKind {
  const isRefused = isInvalid || status === 400 || status === 413 || status === 422;
  if (isRefused && overflowTexts.test(message)) return "context-overflow";
  if (isRefused && contentTexts.test(message)) return "content-refused";
  if (isRefused) return "invalid-request";
  return statuses[status ?? 0] ?? "unavailable";
}

const statuses: Readonly<Record<number, UpstreamFailureKind>> = {
  401: "bad-credential",
  402: "account-blocked",
  403: "bad-credential",
  404: "unknown-model",
  408: "timed-out",
  429: "throttled",
  503: "overloaded",
  504: "timed-out",
  529: "overloaded",
};

/** Whole messages: a caller could make a server quote parts of them. */
const accountTexts = anyOf([
  "^your credit balance is too low to access the (?:anthropic|claude) api\\b",
  "^you have reached your specified api usage limits\\b",
  "^this organization has been disabled\\b",
]);

const overflowTexts = anyOf([
  "^(?:messages[.\\w]*: )?(?:prompt|input) is too long\\b",
  "\\binput length and `max_tokens` exceed context limit\\b",
  "\\btoo many total text bytes\\b",
]);

const contentTexts = anyOf(["^output blocked by content filtering policy\\b"]);

const accountHint =
  "the account at the provider has no credit left, has reached its spending limit or is closed: " +
  "see its billing page";

function wordless(status: number | undefined): string {
  const answer = status === undefined ? "an error" : `status ${status}`;
  return `the model's upstream answered ${answer} and gave no reason`;
}
