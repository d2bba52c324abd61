/** An attempt under way that can be ended from outside. */
export interface HedgedAttempt<Answer> {
  readonly answer: Promise<Answer>;
  abort(): void;
  /** Whether the failure of the other attempt tells what this one would find as well. */
  isFinalFor(error: unknown): boolean;
  /** Of an answer that came when another had come already. */
  discard(answer: Answer): void;
}

/** Two attempts at the same work. */
export interface Hedge<Answer> {
  readonly one: HedgedAttempt<Answer>;
  readonly other: HedgedAttempt<Answer>;
}

/**
 * The answer of whichever comes first; the other is ended. Rejects with the first final failure, or,
 * when both fail, with the later one.
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
          rival.abort();
          resolve(answer);
        },
        (error: unknown) => {
          if (isOver) return;
          isOver = hasFailed || rival.isFinalFor(error);
          hasFailed = true;
          if (!isOver) return;
          rival.abort();
          reject(error);
        },
      );
    };
    follow(one, other);
    follow(other, one);
  });
}
