const pollMs = 20;

/** Waits until no call is open any more, at most so long. */
export async function untilIdle(openCalls: () => number, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (openCalls() > 0 && performance.now() < deadline) await Bun.sleep(pollMs);
}
