import { GatewayError } from "../errors/gateway-error.ts";

/** The error of a call whose signal fired: `caller_left`, unless the reason is a `GatewayError`. */
export function whyEnded({ reason }: { readonly reason: unknown }): GatewayError {
  if (reason instanceof GatewayError) return reason;
  return new GatewayError("caller_left", { message: "The caller closed the connection." });
}
