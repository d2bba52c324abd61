import { GatewayError } from "../../domain/errors/gateway-error.ts";

/** What was asked cannot be done as things are. The message says what to do instead. */
export function wrongState(message: string): GatewayError {
  return new GatewayError("wrong_state", { message });
}
