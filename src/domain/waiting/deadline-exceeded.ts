import { GatewayError } from "../errors/gateway-error.ts";

/** The deadline that the caller set in a header has passed. */
export function deadlineExceeded(timeoutMs: number): GatewayError {
  const ms = Math.round(timeoutMs);
  return new GatewayError("deadline_exceeded", {
    message: `The answer did not end within the ${ms} ms that 'x-sluice-timeout-ms' gave.`,
    // The same request would likely take as long again.
    headers: { "x-should-retry": "false" },
  });
}
