import type { Clock } from "../../domain/clock.ts";
import { secondLookMs } from "../../routing/health/suspicion.ts";
import type { RunningAttempt } from "./running-attempt.ts";

const longestLookMs = 5_000;

export type Slowness = "slow" | "silent";

export interface SlownessOptions {
  /** Undefined: the attempt does not become slow by time alone. */
  readonly afterMs: number | undefined;
  /** Undefined: the target is already known to be silent. */
  readonly attempt: Pick<RunningAttempt, "overdueAfterMs" | "whenSilent"> | undefined;
  /** Called when the answer is overdue, then at growing intervals to check again. */
  readonly look: () => void;
  readonly clock: Pick<Clock, "schedule">;
}

/**
 * Resolves to undefined when the attempt has ended, or to why it should be hedged: it took too
 * long, or its target is silent. Never rejects.
 */
export function untilSlow(
  answer: Promise<unknown>,
  { afterMs, attempt, look, clock }: SlownessOptions,
): Promise<Slowness | undefined> {
  const overdueAfterMs = attempt?.overdueAfterMs ?? Number.POSITIVE_INFINITY;
  return new Promise((resolve) => {
    let isOver = false;
    let cancelLook = (): void => undefined;
    const cancelSlow =
      afterMs === undefined ? undefined : clock.schedule(() => end("slow"), afterMs);
    const end = (slowness?: Slowness): void => {
      isOver = true;
      cancelSlow?.();
      cancelLook();
      resolve(slowness);
    };
    const lookIn = (timeMs: number, nextMs: number): void => {
      cancelLook = clock.schedule(() => {
        look();
        attempt?.whenSilent(() => end("silent"));
        if (!isOver) lookIn(nextMs, Math.min(2 * nextMs, longestLookMs));
      }, timeMs);
    };
    if (Number.isFinite(overdueAfterMs)) lookIn(overdueAfterMs + 1, 2 * secondLookMs);
    attempt?.whenSilent(() => end("silent"));
    answer.then(
      () => end(),
      () => end(),
    );
  });
}
