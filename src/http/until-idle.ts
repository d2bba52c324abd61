import type { Listener } from "./listen.ts";

const pollMs = 20;

/** Waits until no request is open any more, at most so long. */
export async function untilIdle(
  listener: Pick<Listener, "pendingRequests">,
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (listener.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(pollMs);
}
