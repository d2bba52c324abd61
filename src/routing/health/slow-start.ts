/** This many answers, one of them completed, end the slow start. */
const answersToEnd = 10;
/** One failure in this many answers does not cause another ejection. */
const fewPart = 4;
/** The slow start ends after this time even with fewer answers. */
const longestMs = 10_000;

/**
 * Ramps up a target that returned: one attempt at first and one more per answer, so that attempts
 * double with each round trip (TCP slow start, RFC 5681). If it is still broken, few callers fail.
 */
export class SlowStart {
  readonly #startedAtMs: number;
  /** After an ejection, as opposed to a pause: a failure shows that the target is still broken. */
  readonly isAfterEjection: boolean;
  #inFlight = 0;
  #answers = 0;
  #hasGoodEnd = false;
  #failures = 0;
  readonly #failedKeys = new Set<string>();

  constructor(nowMs: number, isAfterEjection: boolean) {
    this.#startedAtMs = nowMs;
    this.isAfterEjection = isAfterEjection;
  }

  get hasRoom(): boolean {
    return this.#inFlight < 1 + this.#answers;
  }

  isOver(nowMs: number): boolean {
    const isProven = this.#answers >= answersToEnd && this.#hasGoodEnd;
    return isProven || nowMs - this.#startedAtMs >= longestMs;
  }

  enter(): void {
    this.#inFlight += 1;
  }

  /** Once per `enter`. */
  leave(): void {
    this.#inFlight -= 1;
  }

  answered(): void {
    this.#answers += 1;
  }

  endedWell(): void {
    this.#hasGoodEnd = true;
  }

  /** Returns whether attempts of several keys failed, and more than a few. */
  failed(key: string): boolean {
    this.#failures += 1;
    this.#failedKeys.add(key);
    return this.#failedKeys.size > 1 && this.#failures * fewPart > this.#answers;
  }
}
