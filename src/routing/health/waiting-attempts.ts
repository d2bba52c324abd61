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

/** Samples needed before average and deviation are used. */
const leastSamples = 10;
/** Gains and factor of RFC 6298, section 2. */
const averageGain = 1 / 8;
const deviationGain = 1 / 4;
const deviationFactor = 4;
/** A sample counts as at most this many times the overdue time. */
const sampleCapFactor = 2;
/** Faster answers are never overdue, because nobody notices the delay. */
const leastOverdueMs = 250;
/** Overdue time with too few samples; a probe then decides. */
const unknownOverdueMs = 3_000;
/** The average expires, so that a target avoided for slowness is tried again. */
const averageLifetimeMs = 60_000;

/**
 * Answer time of a target, estimated like TCP round trips (RFC 6298): a moving average and a moving
 * mean deviation, in milliseconds.
 */
export class AnswerTime {
  #averageMs = 0;
  #deviationMs = 0;
  #samples = 0;
  #sampledAtMs = Number.NEGATIVE_INFINITY;

  /** Undefined with too few or no recent samples. */
  averageAt(nowMs: number): number | undefined {
    const isStale = nowMs - this.#sampledAtMs >= averageLifetimeMs;
    return isStale || this.#samples < leastSamples ? undefined : this.#averageMs;
  }

  /** An attempt that has waited longer is overdue. */
  get overdueAfterMs(): number {
    if (this.#samples < leastSamples) return unknownOverdueMs;
    return Math.max(leastOverdueMs, this.#averageMs + deviationFactor * this.#deviationMs);
  }

  answered(nowMs: number, sampleMs: number): void {
    // Capped, so that a few very slow answers, perhaps of one key, do not distort the estimate.
    const isKnown = this.#samples >= leastSamples;
    const tookMs = isKnown ? Math.min(sampleMs, sampleCapFactor * this.overdueAfterMs) : sampleMs;
    this.#samples += 1;
    this.#sampledAtMs = nowMs;
    if (this.#samples === 1) {
      this.#averageMs = tookMs;
      this.#deviationMs = tookMs / 2;
      return;
    }
    const difference = tookMs - this.#averageMs;
    // The first samples all have the same weight.
    const gain = Math.max(averageGain, 1 / this.#samples);
    this.#averageMs += gain * difference;
    this.#deviationMs += deviationGain * (Math.abs(difference) - this.#deviationMs);
  }

  /** The caller left before the answer, which would have taken at least this long. */
  unanswered(nowMs: number, waitedMs: number): void {
    const averageMs = this.averageAt(nowMs);
    if (averageMs !== undefined && waitedMs > averageMs) this.answered(nowMs, waitedMs);
  }
}
