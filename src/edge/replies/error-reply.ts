import { GatewayError, internalError, type LimitsLeft } from "../../domain/errors/gateway-error.ts";
import type { CredentialForm } from "../../domain/keys/api-key.ts";
import type { ModelEndpoints } from "../../snapshot/call.ts";

/** Turns anything thrown into an error that callers may see; its cause is for the log only. */
export function toGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError ? error : internalError(error);
}

/** The default shape of errors, which is OpenAI's. */
export const ownError: Dialect["error"] = (error) => ({
  status: error.status,
  body: JSON.stringify(error.toBody()),
});

/**
 * Turns an error into an answer; without a dialect in the default shape. `requestId` is undefined for
 * an answer that is made once for many requests.
 */
export function errorReply(error: GatewayError, dialect?: Dialect, requestId?: string): Reply {
  const { limits } = error;
  return {
    ...(dialect?.error ?? ownError)(error, requestId),
    headers: {
      "content-type": "application/json",
      "x-should-retry": shouldRetry(error.status) ? "true" : "false",
      ...(error.status === 401 && dialect?.credential.challenge),
      ...(limits && dialect?.limitHeaders?.(limits)),
      ...error.headers,
    },
  };
}

function shouldRetry(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** A refusal that is made once and sent many times. */
export interface PreparedRefusal {
  readonly error: GatewayError;
  readonly reply: Reply;
}

export function prepareRefusal(error: GatewayError, dialect: Dialect): PreparedRefusal {
  return { error, reply: errorReply(error, dialect) };
}

/** What the gateway itself reads and writes of an API surface: the API key and errors. */
export interface Dialect {
  readonly credential: CredentialForm;
  readonly endpoints: ModelEndpoints;
  /** The header of the request's id, beside `x-request-id`. */
  readonly idHeader?: string | undefined;
  /** Headers of the limits, beside the `x-ratelimit-*` ones. */
  readonly limitHeaders?: (limits: LimitsLeft) => Readonly<Record<string, string>>;
  /**
   * Writes an error as JSON. `error.toBody()` has the texts that callers may see. Without a request
   * id it is made once for many requests.
   */
  readonly error: (
    error: GatewayError,
    requestId?: string,
  ) => { readonly status: number; readonly body: string };
  /** The last frame of a stream that fails after its 200 was sent. */
  readonly errorFrame: (error: GatewayError, requestId: string) => string;
}

/** The answer of a handler; `edge/dispatch` adds the headers that every response has. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
}

export function jsonReply(value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return jsonTextReply(JSON.stringify(value), headers);
}

/** `body` is a JSON text, or its bytes. */
export function jsonTextReply(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): Reply {
  return { status: 200, headers: { "content-type": "application/json", ...headers }, body };
}

export function textReply(status: number, body: string): Reply {
  return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body };
}
