/** How answers are stored for replays with the same `Idempotency-Key`. */
export interface IdempotencySettings {
  /** Limit on an answer that can be joined, stored and replayed. */
  readonly answerLimitBytes: number;
  /** Limit on bytes of running streamed answers that are held for joining calls. */
  readonly memoryLimitBytes: number;
  /** Limit on stored bytes; the oldest answers of the largest user are evicted first. */
  readonly storageLimitBytes: number;
  readonly keepMs: number;
}

/** Outcome of an answer to a call with an `Idempotency-Key`. */
export type AnswerResult = "stored" | "too_large" | "evicted" | "replayed" | "joined";
