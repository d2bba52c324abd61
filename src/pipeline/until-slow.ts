import type { Clock } from "../domain/clock.ts";

export interface SlownessOptions {
  /** Undefined: time alone makes nothing slow. */
  readonly afterMs: number | undefined;
  /** Runs what it is given when the target turns out to be silent. */
  readonly whenSilent: (run: () => void) => void;
  readonly clock: Pick<Clock, "schedule">;
}

/**
 * Resolves when an answer is there, or its attempt has failed (undefined); when it has taken longer
 * than it may; or when its target is found to be silent. Never rejects.
 */
export function untilSlow(
  answer: Promise<unknown>,
  { afterMs, whenSilent, clock }: SlownessOptions,
): Promise<"slow" | "silent" | undefined> {
  return new Promise((resolve) => {
    const cancel =
      afterMs === undefined ? undefined : clock.schedule(() => resolve("slow"), afterMs);
    const end = (slowness?: "silent"): void => {
      cancel?.();
      resolve(slowness);
    };
    whenSilent(() => end("silent"));
    answer.then(
      () => end(),
      () => end(),
    );
  });
}
