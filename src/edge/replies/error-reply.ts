import { GatewayError, internalError } from "../../domain/errors/gateway-error.ts";
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

/** Turns an error into an answer; without a dialect in the default shape. */
export function errorReply(error: GatewayError, dialect?: Dialect): Reply {
  return {
    ...(dialect?.error ?? ownError)(error),
    headers: {
      "content-type": "application/json",
      "x-should-retry": shouldRetry(error.status) ? "true" : "false",
      ...(error.status === 401 && dialect?.credential.challenge),
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
  /** Writes an error as JSON. `error.toBody()` has the texts that callers may see. */
  readonly error: (error: GatewayError) => { readonly status: number; readonly body: string };
  /** The last frame of a stream that fails after its 200 was sent. */
  readonly errorFrame: (error: GatewayError) => string;
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
