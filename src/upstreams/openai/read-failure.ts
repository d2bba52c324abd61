import type { Clock } from "../../domain/clock.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { FailedAnswer } from "../adapter.ts";
import { cleanCode, cleanMessage } from "../shared/clean-message.ts";
import { countOf, isObject, listOf, objectOf, textOf } from "../shared/json-fields.ts";
import { errorIn, messageOf, paramOf } from "./error-body.ts";
import { readRetryAfter } from "../shared/retry-after.ts";

export const requestIdHeader = "x-request-id";

/** Classifies non-2xx answers of an OpenAI-compatible server. */
export function createReadFailure(clock: Clock): (answer: FailedAnswer) => UpstreamFailureDetails {
  return ({ status, headers, body }) => {
    const details = classifyError(status, readError(new TextDecoder().decode(body)));
    return { ...details, status, retryAfterMs: readRetryAfter(headers, clock.now()) };
  };
}

/** The error of a body; a body that is not JSON (a proxy's HTML page) has no useful message. */
function readError(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? (errorIn(value) ?? value) : listOf(value)?.[0];
  } catch {
    return undefined;
  }
}

/** `status` is undefined for errors in a 2xx answer, which only the body describes. */
export function classifyError(status: number | undefined, error: unknown): UpstreamFailureDetails {
  const body = objectOf(error);
  const message = textOf(error) ?? (body && messageOf(body)) ?? wordless(status);
  const words = [body?.["code"], body?.["type"], message].map(String).join(" ").toLowerCase();
  const knownStatus = status ?? statusOf(body?.["code"]) ?? statusOf(body?.["status"]);
  return {
    kind: classify(knownStatus, words),
    message: cleanMessage(message),
    status: knownStatus,
    code: cleanCode(body?.["code"]) ?? cleanCode(body?.["type"]),
    param: cleanParam(body && paramOf(body)),
  };
}

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

function wordless(status: number | undefined): string {
  const answer = status === undefined ? "an error" : `status ${status}`;
  return `the model's upstream answered ${answer} and gave no reason`;
}

/** The text decides first if servers use one status for several meanings, then the status. */
function classify(status: number | undefined, words: string): UpstreamFailureKind {
  // A throttle that mentions tokens must never be taken for an exceeded context window.
  if (status === 429) return overloadWords.test(words) ? "overloaded" : "throttled";
  const isRefusal = status === undefined || (status >= 400 && status < 500);
  if (isRefusal && overflowWords.test(words)) return "context-overflow";
  if (isRefusal && contentWords.test(words)) return "content-refused";
  if (status === undefined) return classifyWords(words);
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

function classifyWords(words: string): UpstreamFailureKind {
  if (/rate.?limit|throttl|quota|too many requests/.test(words)) return "throttled";
  if (overloadWords.test(words)) return "overloaded";
  if (/invalid_request|badrequest/.test(words)) return "invalid-request";
  return "unavailable";
}

const overloadWords = /overload|capacity|unavailable_error|service_unavailable/;
const overflowWords =
  /context_length_exceeded|exceed_context_size|maximum context length|context (?:window|length|size)|input tokens exceed|prompt is too long|too many tokens in/;
const contentWords = /content_policy|content_filter|responsible.?ai|content management policy/;
