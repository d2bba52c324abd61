import { GatewayError, internalError } from "../../domain/errors/gateway-error.ts";
import type { Reply } from "./reply.ts";

/** Turns anything thrown into the error a caller may see. Causes stay behind, for the log. */
export function toGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError ? error : internalError(error);
}

/** The one place where an error becomes an answer. */
export function errorReply(error: GatewayError): Reply {
  return {
    status: error.status,
    headers: {
      "content-type": "application/json",
      "x-should-retry": shouldRetry(error.status) ? "true" : "false",
      ...error.headers,
    },
    body: JSON.stringify(error.toBody()),
  };
}

/** The frame that ends a stream which failed after its 200 was sent. No `[DONE]` follows. */
export function errorFrame(error: GatewayError): string {
  return `data: ${JSON.stringify(error.toBody())}\n\n`;
}

function shouldRetry(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
