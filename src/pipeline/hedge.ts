import type { Clock } from "../domain/clock.ts";

/** An attempt under way that can be ended from outside. */
export interface HedgedAttempt<Answer> {
  readonly answer: Promise<Answer>;
  abort(): void;
  /** Of an answer that came when another had come already. */
  discard(answer: Answer): void;
}

/** Whether an attempt answers, or fails, within a time. Never rejects. */
export function hasAnsweredWithin(
  answer: Promise<unknown>,
  timeMs: number,
  clock: Pick<Clock, "schedule">,
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(() => resolve(false), timeMs);
    const end = (): void => {
      cancel();
      resolve(true);
    };
    answer.then(end, end);
  });
}

/**
 * The answer of whichever comes first; the other is ended. Rejects, when both fail, with the later
 * failure.
 */
export function firstToAnswer<Answer>(
  one: HedgedAttempt<Answer>,
  other: HedgedAttempt<Answer>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let hasFailed = false;
    let hasAnswered = false;
    const follow = (own: HedgedAttempt<Answer>, rival: HedgedAttempt<Answer>): void => {
      own.answer.then(
        (answer) => {
          if (hasAnswered) return own.discard(answer);
          hasAnswered = true;
          rival.abort();
          resolve(answer);
        },
        (error: unknown) => {
          if (hasFailed) reject(error);
          hasFailed = true;
        },
      );
    };
    follow(one, other);
    follow(other, one);
  });
}
