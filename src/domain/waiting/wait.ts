import type { EndSignal } from "./end-signal.ts";
import type { Clock } from "../clock.ts";

/** Resolves after the time, or at once when the signal fires. Never rejects. */
export function wait(
  durationMs: number,
  signal: EndSignal,
  clock: Pick<Clock, "schedule">,
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.schedule(end, durationMs);
    signal.addEventListener("abort", end, { once: true });
  });
}
