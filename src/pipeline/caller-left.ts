import { GatewayError } from "../domain/gateway-error.ts";

/** Ends a call that nobody waits for any more. */
export function callerLeft(): GatewayError {
  return new GatewayError("caller_left", { message: "The caller closed the connection." });
}
