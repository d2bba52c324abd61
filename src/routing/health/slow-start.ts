/** So many answers, and one that came to a good end, show that a target is back. */
const answersToEnd = 10;
/** One failure in so many answers is no sign of an outage. */
const fewPart = 4;
/** A target that has not failed for so long is back, however few its answers were. */
const longestMs = 10_000;

/**
 * How a target comes back: one attempt at once at first, and one more for each answer, so that the
 * number of attempts doubles with each round trip (slow start of TCP, RFC 5681). If it is still
 * broken, few callers find out.
 */
export class SlowStart {
  readonly #startedAtMs: number;
  /** It comes back from an ejection: a failure shows that it is still broken. */
  readonly isOnTrust: boolean;
  #inFlight = 0;
  #answers = 0;
  #hasGoodEnd = false;
  #failures = 0;
  readonly #failedKeys = new Set<string>();

  constructor(nowMs: number, isOnTrust: boolean) {
    this.#startedAtMs = nowMs;
    this.isOnTrust = isOnTrust;
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

  /** Once for each that entered. */
  leave(): void {
    this.#inFlight -= 1;
  }

  answered(): void {
    this.#answers += 1;
  }

  endedWell(): void {
    this.#hasGoodEnd = true;
  }

  /** What it returns: whether attempts of several keys fail, and they are more than a few. */
  failed(key: string): boolean {
    this.#failures += 1;
    this.#failedKeys.add(key);
    return this.#failedKeys.size > 1 && this.#failures * fewPart > this.#answers;
  }
}
