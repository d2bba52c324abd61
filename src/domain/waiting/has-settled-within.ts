import type { Clock } from "../clock.ts";

/** Whether a promise settles within a time. Never rejects. */
export function hasSettledWithin(
  promise: Promise<unknown>,
  timeMs: number,
  clock: Pick<Clock, "schedule">,
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(() => resolve(false), timeMs);
    const end = (): void => {
      cancel();
      resolve(true);
    };
    promise.then(end, end);
  });
}
