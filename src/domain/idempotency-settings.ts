/** How answers are kept for calls that are repeated with their `Idempotency-Key`. */
export interface IdempotencySettings {
  /** Largest answer that can be joined, kept and shown again. */
  readonly answerLimitBytes: number;
  /** Most bytes of streamed answers under way that are held for those who join. */
  readonly memoryLimitBytes: number;
  /** Most bytes that are kept in the database; the oldest of who has most go first. */
  readonly storageLimitBytes: number;
  readonly keepMs: number;
}

/** What becomes of an answer to a call with an `Idempotency-Key`. */
export type AnswerResult = "stored" | "too_large" | "evicted" | "replayed" | "joined";
