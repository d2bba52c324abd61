import { removeTexts } from "../chat/remove-texts.ts";
import type { TokenUsage } from "../usage/usage.ts";
import type { UpstreamFailureKind } from "./failure-kind.ts";

export interface UpstreamFailureDetails {
  readonly kind: UpstreamFailureKind;
  /** The upstream's own words, secrets removed; fit for the log, and for the caller when the caller is to blame. */
  readonly message: string;
  /** The gateway's own bounds, which say nothing of the target. */
  readonly isOwn?: boolean;
  readonly status?: number | undefined;
  /** The provider's own name of it, such as `ThrottlingException`. Never holds a prompt. */
  readonly code?: string | undefined;
  /** What the operator can do about it, in the gateway's own words. */
  readonly hint?: string | undefined;
  /** The provider's id of the request, for questions to its support. */
  readonly requestId?: string | undefined;
  /** How long the upstream asked to be left alone, milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** What the upstream counted of an answer that is whole and yet no answer. */
  readonly usage?: TokenUsage | undefined;
  /** The request field the upstream named. */
  readonly param?: string | undefined;
}

/** Thrown by an attempt; `call/` decides what it means for the call. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly details: UpstreamFailureDetails;

  constructor(details: UpstreamFailureDetails, options?: ErrorOptions) {
    super(details.message, options);
    this.details = details;
  }

  /** The same failure with the provider's id of the request, if it has none yet. */
  withRequestId(requestId: string | null): UpstreamFailure {
    const isId = requestId !== null && /^[A-Za-z0-9_.-]{1,100}$/.test(requestId);
    if (!isId || this.details.requestId !== undefined) return this;
    return new UpstreamFailure({ ...this.details, requestId }, { cause: this });
  }

  /** The same failure in words that repeat none of these texts. */
  withoutTexts(texts: readonly string[]): UpstreamFailure {
    const { message, param, code } = this.details;
    const clean = (words: string): string => removeTexts(words, texts);
    const details = {
      ...this.details,
      message: clean(message),
      param: param && clean(param),
      code: code && clean(code),
    };
    const isQuoting =
      details.message !== message || details.param !== param || details.code !== code;
    return isQuoting ? new UpstreamFailure(details, { cause: this.cause }) : this;
  }
}
