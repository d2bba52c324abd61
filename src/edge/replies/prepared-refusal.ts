import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { errorReply } from "./error-reply.ts";
import type { Reply } from "./reply.ts";

/** A refusal that is made once and sent as often as it is needed. */
export interface PreparedRefusal {
  readonly error: GatewayError;
  readonly reply: Reply;
}

export function prepareRefusal(error: GatewayError): PreparedRefusal {
  return { error, reply: errorReply(error) };
}
