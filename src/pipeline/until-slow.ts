import type { Clock } from "../domain/clock.ts";
import { secondLookMs } from "./routing/suspicion.ts";
import type { RunningAttempt } from "./running-attempt.ts";

export type Slowness = "slow" | "silent";

export interface SlownessOptions {
  /** Undefined: time alone makes nothing slow. */
  readonly afterMs: number | undefined;
  /** Undefined: its target is known to be silent. */
  readonly attempt: Pick<RunningAttempt, "patienceMs" | "whenSilent"> | undefined;
  /** Runs twice when the answer is overdue: a suspicion needs a second look. */
  readonly look: () => void;
  readonly clock: Pick<Clock, "schedule">;
}

/**
 * Resolves when an answer is there, or its attempt has failed (undefined); when it has taken longer
 * than it may; or when its target is found to be silent. Never rejects.
 */
export function untilSlow(
  answer: Promise<unknown>,
  { afterMs, attempt, look, clock }: SlownessOptions,
): Promise<Slowness | undefined> {
  const patienceMs = attempt?.patienceMs ?? Number.POSITIVE_INFINITY;
  return new Promise((resolve) => {
    const timers: (() => void)[] = [];
    const end = (slowness?: Slowness): void => {
      for (const cancel of timers) cancel();
      resolve(slowness);
    };
    const lookAt = (timeMs: number): void => {
      timers.push(
        clock.schedule(() => {
          look();
          attempt?.whenSilent(() => end("silent"));
        }, timeMs),
      );
    };
    if (afterMs !== undefined) timers.push(clock.schedule(() => end("slow"), afterMs));
    if (Number.isFinite(patienceMs)) {
      lookAt(patienceMs + 1);
      lookAt(patienceMs + 1 + 2 * secondLookMs);
    }
    attempt?.whenSilent(() => end("silent"));
    answer.then(
      () => end(),
      () => end(),
    );
  });
}
