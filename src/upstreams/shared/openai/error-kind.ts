import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";
import { anyOf } from "../failure-reply.ts";
import refusals from "./refusals.json" with { type: "json" };

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
  if (says(error, "account-blocked") || saysAccount(error)) return "account-blocked";
  if (isTooLarge(error)) return "unsupported";
  if (status === 429) return kindOfThrottle(error);
  if (says(error, "throttled")) return "throttled";
  if (says(error, "overloaded")) return "overloaded";
  const isOverflow = says(error, "context-overflow") || overflowTexts.test(innerMessage);
  if (isOverflow) return "context-overflow";
  if (status !== undefined && (status < 400 || status > 499)) return kindByStatus(status);
  if (overflowWords.test(innerMessage)) return "context-overflow";
  if (says(error, "content-refused") || contentWords.test(innerMessage)) return "content-refused";
  if (says(error, "bad-credential")) return "bad-credential";
  if (says(error, "unknown-model")) return "unknown-model";
  if (noEndpointText.test(message)) return "unsupported";
  if (status === undefined) return kindByWords(error);
  // What is not found is something else that the request names.
  const isOther = error.param !== undefined && error.param !== "model";
  return status === 404 && isOther ? "invalid-request" : kindByStatus(status);
}

/** Codes of providers and of resellers' servers, by what they mean. Google answers 400 for a wrong key. */
function says({ codes }: ErrorFacts, kind: keyof typeof codesOf): boolean {
  return codesOf[kind].some((code) => codes.has(code));
}

function saysAccount({ status, message }: ErrorFacts): boolean {
  return status !== undefined && status >= 400 && status < 500 && accountTexts.test(message);
}

/** A throttle that mentions tokens must never be taken for an exceeded context window. */
function kindOfThrottle(error: ErrorFacts): UpstreamFailureKind {
  const isOverload = says(error, "overloaded") || overloadText.test(error.message);
  return isOverload ? "overloaded" : "throttled";
}

/** One request is larger than what the account may send in a minute. */
export function isTooLarge({ status, message }: ErrorFacts): boolean {
  return (status === 429 || status === 413) && tooLargeText.test(message);
}

function kindByWords(error: ErrorFacts): UpstreamFailureKind {
  if (says(error, "invalid-request")) return "invalid-request";
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

const { codes: codesOf, texts } = refusals;

/** Whole messages of providers that send no code for it. */
const accountTexts = anyOf(Object.values(texts.account).flatMap(wholeOf));
const throttleText = anyOf(texts.throttle);
const overloadText = anyOf(texts.overload);
/** OpenAI's words, which Groq sends with 413. */
const tooLargeText = anyOf(texts["too-large"]);
/** Whole sentences, which servers also send with a 500. */
const overflowTexts = anyOf(Object.values(texts.overflow).flat());
/** They concern only the caller, whatever they quote. */
const overflowWords = anyOf(texts["overflow-words"]);
const contentWords = anyOf(texts.content);
/** OpenRouter's 404 for a request with images or tools. */
const noEndpointText = anyOf(texts["no-endpoint"]);

function wholeOf(list: readonly string[]): readonly string[] {
  return list.map((text) => `^${text}$`);
}
