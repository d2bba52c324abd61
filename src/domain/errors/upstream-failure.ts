import { quotesAny } from "../chat/quotes-any.ts";
import type { TokenUsage } from "../usage/usage.ts";
import type { UpstreamFailureKind } from "./failure-kind.ts";

export interface UpstreamFailureDetails {
  readonly kind: UpstreamFailureKind;
  /** The upstream's message without secrets; sent to the caller only if the caller is at fault. */
  readonly message: string;
  /** Caused by a limit of the gateway, so no evidence about the target. */
  readonly isOwn?: boolean;
  readonly status?: number | undefined;
  /** The provider's name of the error, such as `ThrottlingException`. Never holds a prompt. */
  readonly code?: string | undefined;
  /** What the operator can do about it. */
  readonly hint?: string | undefined;
  /** The provider's request id, for its support. */
  readonly requestId?: string | undefined;
  /** The upstream's Retry-After in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Usage that the upstream reported for an answer that nobody gets. */
  readonly usage?: TokenUsage | undefined;
  /** The request field the upstream named. */
  readonly param?: string | undefined;
}

/** Thrown by an attempt; `call/` decides how it affects the call. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly details: UpstreamFailureDetails;

  constructor(details: UpstreamFailureDetails, options?: ErrorOptions) {
    super(details.message, options);
    this.details = details;
  }

  /** Adds the provider's request id, if there is none yet. */
  withRequestId(requestId: string | null): UpstreamFailure {
    const isId = requestId !== null && /^[A-Za-z0-9_.-]{1,100}$/.test(requestId);
    if (!isId || this.details.requestId !== undefined) return this;
    return new UpstreamFailure({ ...this.details, requestId }, { cause: this });
  }

  /** Adds what the answer says of its usage, if the failure does not say it. */
  withUsage(usage: TokenUsage | undefined): UpstreamFailure {
    if (usage === undefined || this.details.usage !== undefined) return this;
    return new UpstreamFailure({ ...this.details, usage }, { cause: this.cause });
  }

  /** Withholds the message and the fields that quote one of these texts. */
  withoutTexts(texts: readonly string[]): UpstreamFailure {
    const { message, param, code } = this.details;
    const parts = Object.entries({ message, param, code });
    const quoting = parts.filter(([, words]) => words !== undefined && quotesAny(words, texts));
    if (quoting.length === 0) return this;
    const withheld = Object.fromEntries(quoting.map(([name]) => [name, "[removed]"]));
    return new UpstreamFailure({ ...this.details, ...withheld }, { cause: this.cause });
  }
}

/** The failure of an answer that began and is invalid; `message` is for the log. */
export function brokenAnswer(message: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message }, { cause });
}

/** An answer that exceeds a limit of the gateway; `what` says which and how large it is. */
export function answerTooLarge(what: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure({ kind: "answer-too-large", message: `it has ${what}` }, { cause });
}

/** A fresh credential that is refused too is a bad one, which the operator must fix. */
export function asBadCredential(failure: UpstreamFailure): UpstreamFailure {
  const { details } = failure;
  if (details.kind !== "stale-credential") return failure;
  return new UpstreamFailure({ ...details, kind: "bad-credential" }, { cause: failure });
}

/** A request that this model does not support; another may. `param` is the caller's field. */
export function unsupported(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "unsupported", param, message });
}

/** A request that is invalid as it was sent. `param` is the caller's field. */
export function invalidRequest(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "invalid-request", param, message });
}
