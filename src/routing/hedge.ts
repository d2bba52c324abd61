export interface HedgedAttempt<Answer> {
  readonly answer: Promise<Answer>;
  /** `isBeaten`: the other attempt has answered. */
  abort(isBeaten: boolean): void;
  /** Whether this attempt would fail the same way as the other. */
  isFinalFor(error: unknown): boolean;
  /** Called with an answer that came second. */
  discard(answer: Answer): void;
}

export interface Hedge<Answer> {
  readonly one: HedgedAttempt<Answer>;
  readonly other: HedgedAttempt<Answer>;
}

/**
 * Returns the first answer and aborts the other attempt. Rejects with the first final failure, or
 * with the later one when both fail.
 */
export function firstToAnswer<Answer>({ one, other }: Hedge<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let hasFailed = false;
    let isOver = false;
    const follow = (own: HedgedAttempt<Answer>, rival: HedgedAttempt<Answer>): void => {
      own.answer.then(
        (answer) => {
          if (isOver) return own.discard(answer);
          isOver = true;
          rival.abort(true);
          resolve(answer);
        },
        (error: unknown) => {
          if (isOver) return;
          isOver = hasFailed || rival.isFinalFor(error);
          hasFailed = true;
          if (!isOver) return;
          rival.abort(false);
          reject(error);
        },
      );
    };
    follow(one, other);
    follow(other, one);
  });
}
