/** How answers are stored for replays with the same `Idempotency-Key`. */
export interface IdempotencySettings {
  /** Limit on an answer that can be stored and replayed. */
  readonly answerLimitBytes: number;
  /** Limit on bytes of answers that are held to be stored. */
  readonly memoryLimitBytes: number;
  /** Limit on stored bytes; the oldest answers of the largest user are evicted first. */
  readonly storageLimitBytes: number;
  readonly keepMs: number;
  /** Most calls of a process that wait for the answer of an equal one. */
  readonly waitingLimit: number;
}

/** Outcome of an answer to a call with an `Idempotency-Key`. */
export type AnswerResult = "stored" | "too_large" | "evicted" | "replayed";
