import { AnswerTime } from "./answer-time.ts";

/** So many overdue attempts, and no answer since the last of them began, are no chance. */
const overdueForSilence = 3;

/** An attempt that has no answer yet. */
export interface WaitingAttempt {
  readonly beganMs: number;
}

/**
 * Attempts of one kind (streamed or whole) that wait for the answer of a target, oldest first. Tells
 * when a target that used to answer has fallen silent, long before its time limits end.
 */
export class WaitingAttempts<Attempt extends WaitingAttempt> {
  readonly #waiting = new Set<Attempt>();
  readonly #time = new AnswerTime();
  #answeredAtMs = Number.NEGATIVE_INFINITY;

  get time(): AnswerTime {
    return this.#time;
  }

  [Symbol.iterator](): Iterator<Attempt> {
    return this.#waiting[Symbol.iterator]();
  }

  add(attempt: Attempt): void {
    this.#waiting.add(attempt);
  }

  answered(attempt: Attempt, nowMs: number, tookMs: number): void {
    this.#waiting.delete(attempt);
    this.#answeredAtMs = nowMs;
    this.#time.answered(nowMs, tookMs);
  }

  /** It ended without an answer. */
  ended(attempt: Attempt): void {
    this.#waiting.delete(attempt);
  }

  isSilent(nowMs: number): boolean {
    if (this.#waiting.size < overdueForSilence) return false;
    let overdue = 0;
    for (const { beganMs } of this.#waiting) {
      if (nowMs - beganMs <= this.#time.patienceMs) return false;
      overdue += 1;
      if (overdue === overdueForSilence) return this.#answeredAtMs <= beganMs;
    }
    return false;
  }
}
