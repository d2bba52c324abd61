import type { Clock } from "../../../domain/clock.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";
import type { FailedAnswer } from "../../adapter.ts";
import { cleanCode, cleanMessage, readRetryAfter, wordless } from "../failure-reply.ts";
import {
  countOf,
  isObject,
  type JsonObject,
  listOf,
  nonEmpty,
  objectOf,
  textOf,
} from "../../../domain/json-fields.ts";
import { errorIn, innermostMessage, messageOf, paramOf } from "./error-body.ts";
import { isTooLarge, kindOfError } from "./error-kind.ts";

export const requestIdHeader = "x-request-id";

/** Classifies non-2xx answers of servers of OpenAI's wires, and of Anthropic's. */
export function createReadFailure(clock: Clock): (answer: FailedAnswer) => UpstreamFailureDetails {
  return ({ status, headers, body }) => {
    const details = classifyError(status, readError(new TextDecoder().decode(body)));
    const retryAfterMs = readRetryAfter(headers, clock.now()) ?? details.retryAfterMs;
    return { ...details, status, retryAfterMs };
  };
}

/** The error of a body: of its object, the first of its list, or its text. */
function readError(text: string): unknown {
  const value = readWords(text);
  const first = listOf(value)?.[0] ?? value;
  return isObject(first) ? (errorIn(first) ?? first) : first;
}

/**
 * Plain text is a message, but no page that a proxy has for browsers. Some servers refuse a stream
 * with an event.
 */
function readWords(text: string): unknown {
  const event = /^(?:event:[^\n]*\n)?data:([^\n]*)/.exec(text)?.[1];
  try {
    return JSON.parse(event ?? text);
  } catch {
    return /^\s*</.test(text) ? undefined : nonEmpty(text.trim());
  }
}

/** `status` is undefined for errors in a 2xx answer, which only the body describes. */
export function classifyError(status: number | undefined, error: unknown): UpstreamFailureDetails {
  const body = objectOf(error);
  const message = nonEmpty(error) ?? (body && messageOf(body)) ?? wordless(status);
  const innerMessage = innermostMessage(message, body);
  const knownStatus = status ?? statusOf(body?.["code"]) ?? statusOf(body?.["status"]);
  const param = cleanParam(body && paramOf(body));
  const codes = codesOf(body);
  const facts = { status: knownStatus, codes, message, innerMessage, param };
  const kind = kindOfError(facts);
  return {
    kind,
    message: isTooLarge(facts) ? tooLargeForAccount : cleanMessage(innerMessage),
    status: knownStatus,
    code: namesOf(body)
      .map(cleanCode)
      .find((code) => code !== undefined),
    param,
    hint: hintFor(kind),
    retryAfterMs: retryDelayOf(body),
  };
}

/** The provider's words have the account's limits. */
const tooLargeForAccount =
  "the request is larger than the provider takes at once; send less, or a lower max_tokens";

/** Names of the error, the most precise one first. */
function namesOf(body: JsonObject | undefined): readonly unknown[] {
  const anthropics = objectOf(body?.["details"])?.["error_code"];
  const named = [body?.["code"], body?.["type"], body?.["status"]];
  return [anthropics, ...named, amazonsName(body?.["__type"])];
}

/** The last part of `com.amazon.coral.service#UnknownOperationException`. */
function amazonsName(type: unknown): string | undefined {
  return textOf(type)?.split("#").at(-1);
}

function codesOf(body: JsonObject | undefined): ReadonlySet<string> {
  const reasons = detailsOf(body).map(({ reason }) => reason);
  const codes = [...namesOf(body), ...reasons].flatMap((name) => textOf(name)?.toLowerCase() ?? []);
  // OpenRouter's refusal of content is 403, as that of a credential.
  const flagged = objectOf(body?.["metadata"])?.["flagged_input"];
  return new Set(flagged === undefined ? codes : [...codes, "flagged_input"]);
}

/** Google's further facts (`google.rpc.ErrorInfo`, `google.rpc.RetryInfo`). */
function detailsOf(body: JsonObject | undefined): readonly JsonObject[] {
  return (listOf(body?.["details"]) ?? []).filter(isObject);
}

/** `{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.1s"}` */
function retryDelayOf(body: JsonObject | undefined): number | undefined {
  for (const { retryDelay } of detailsOf(body)) {
    const seconds = /^(\d{1,9}(?:\.\d+)?)s$/.exec(textOf(retryDelay) ?? "")?.[1];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1_000);
  }
  return undefined;
}

function hintFor(kind: UpstreamFailureKind): string | undefined {
  return kind === "account-blocked" ? accountHint : undefined;
}

const accountHint =
  "the account at the provider has no credit left, has reached its spending limit or is closed: " +
  "see its billing page";

/** A code that is an HTTP status: servers also have numeric codes of their own. */
function statusOf(code: unknown): number | undefined {
  const number = countOf(code);
  return number !== undefined && number >= 400 && number < 600 ? number : undefined;
}

/** The path of a field, if it looks like one: such words quote no caller, so they may be logged. */
function cleanParam(param: unknown): string | undefined {
  const text = textOf(param);
  return text !== undefined && /^[\w.$[\]-]{1,200}$/.test(text) ? text : undefined;
}
