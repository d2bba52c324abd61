import { GatewayError, internalError } from "../../domain/errors/gateway-error.ts";
import type { Dialect } from "../dialect.ts";
import type { Reply } from "./reply.ts";

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
