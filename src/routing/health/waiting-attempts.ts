import { AnswerTime } from "./answer-time.ts";

/**
 * This many overdue attempts, without an answer since the first began, mean that a target is
 * silent.
 */
const overdueForSilence = 3;

/** An attempt that has no answer yet. */
export interface WaitingAttempt {
  readonly beganMs: number;
}

/**
 * Attempts of one kind (streamed or whole) that wait for an answer of a target, oldest first.
 * Detects a silent target long before timeouts do.
 */
export class WaitingAttempts<Attempt extends WaitingAttempt> {
  readonly #waiting = new Set<Attempt>();
  /** Waiting attempts that began after the last answer. */
  readonly #sinceAnswer = new Set<Attempt>();
  readonly #time = new AnswerTime();

  get time(): AnswerTime {
    return this.#time;
  }

  add(attempt: Attempt): void {
    this.#waiting.add(attempt);
    this.#sinceAnswer.add(attempt);
  }

  answered(attempt: Attempt, nowMs: number): void {
    this.#waiting.delete(attempt);
    this.#sinceAnswer.clear();
    this.#time.answered(nowMs, nowMs - attempt.beganMs);
  }

  /** The attempt ended without an answer. */
  ended(attempt: Attempt): void {
    this.#waiting.delete(attempt);
    this.#sinceAnswer.delete(attempt);
  }

  isOverdue({ beganMs }: Attempt, nowMs: number): boolean {
    return nowMs - beganMs > this.#time.overdueAfterMs;
  }

  overdue(nowMs: number): readonly Attempt[] {
    return [...this.#waiting].filter((attempt) => this.isOverdue(attempt, nowMs));
  }

  isSilent(nowMs: number): boolean {
    if (this.#sinceAnswer.size < overdueForSilence) return false;
    let overdue = 0;
    for (const attempt of this.#sinceAnswer) {
      if (!this.isOverdue(attempt, nowMs)) return false;
      overdue += 1;
      if (overdue === overdueForSilence) return true;
    }
    return false;
  }
}
