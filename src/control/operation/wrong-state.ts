import { GatewayError } from "../../domain/errors/gateway-error.ts";

/** The request conflicts with the current state. The message explains what to do instead. */
export function wrongState(message: string): GatewayError {
  return new GatewayError("wrong_state", { message });
}
