import { GatewayError } from "../errors/gateway-error.ts";

/** The time is over that the caller's own header gave to its call. */
export function deadlineExceeded(timeoutMs: number): GatewayError {
  const ms = Math.round(timeoutMs);
  return new GatewayError("deadline_exceeded", {
    message: `The answer did not end within the ${ms} ms that 'x-sluice-timeout-ms' gave.`,
    // The same request would most likely take as long again.
    headers: { "x-should-retry": "false" },
  });
}
