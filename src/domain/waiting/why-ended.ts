import { GatewayError } from "../errors/gateway-error.ts";

/** What a call ends with whose signal has fired: its caller has left, unless the signal says else. */
export function whyEnded({ reason }: { readonly reason: unknown }): GatewayError {
  if (reason instanceof GatewayError) return reason;
  return new GatewayError("caller_left", { message: "The caller closed the connection." });
}
