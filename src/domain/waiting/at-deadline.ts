import type { Clock } from "../clock.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Times in monotonic milliseconds. */
interface DeadlineCall {
  readonly receivedAt: number;
  /** What the caller set in a header, if anything. */
  readonly options: { readonly deadlineAt: number | undefined };
}

/** Calls `end` with the error once the deadline of a call has passed; returns how to cancel it. */
export function atDeadline(
  { receivedAt, options: { deadlineAt } }: DeadlineCall,
  clock: Pick<Clock, "schedule" | "monotonic">,
  end: (error: GatewayError) => void,
): () => void {
  if (deadlineAt === undefined) return () => undefined;
  const leftMs = Math.max(0, deadlineAt - clock.monotonic());
  return clock.schedule(() => end(deadlineExceeded(deadlineAt - receivedAt)), leftMs);
}

function deadlineExceeded(timeoutMs: number): GatewayError {
  const ms = Math.round(timeoutMs);
  return new GatewayError("deadline_exceeded", {
    message: `The answer did not end within the ${ms} ms that 'x-sluice-timeout-ms' gave.`,
    // The same request would likely take as long again.
    headers: { "x-should-retry": "false" },
  });
}
